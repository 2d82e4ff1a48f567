# compare: several runs over one another
# Redraw:  gnuplot compare.gp        (data: compare.dat)
# As text: gnuplot -e "FORMATS='dumb'" compare.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'compare.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 2130,1170 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 682,374 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 7.1in,3.9in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,35 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'compare.'.F.SUFFIX }
if (F eq 'svg') { set print 'compare.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
set key at screen 0.5,0.99 center top
set lmargin at screen 0.08
set rmargin at screen 0.48
set bmargin at screen 0.6
set tmargin at screen 0.9
set xrange [0:5.83161638]
set xlabel 'simulated time (s)'
set ylabel 'decode rows'
set yrange [0:40]
set ytics 10
set format y '%g'
plot \
    DATA index 0 using 1:2 with lines lc rgb '#0072b2' lw 1.3 title 'run', \
    DATA index 1 using 1:2 with lines lc rgb '#d55e00' lw 1.3 title 'run'
if (F eq 'svg') { print axes(1, '--') }
set key off
set lmargin at screen 0.58
set rmargin at screen 0.98
set bmargin at screen 0.6
set tmargin at screen 0.9
set xrange [0:5.83161638]
set xlabel 'simulated time (s)'
set ylabel 'launches per step'
set yrange [0:*]
set ytics autofreq
set format y '%g'
plot \
    DATA index 2 using 1:2 with lines lc rgb '#0072b2' lw 1.3 title 'run', \
    DATA index 3 using 1:2 with lines lc rgb '#d55e00' lw 1.3 title 'run'
if (F eq 'svg') { print axes(2, '--') }
set lmargin at screen 0.08
set rmargin at screen 0.48
set bmargin at screen 0.11
set tmargin at screen 0.41
set logscale x
set format x '%g'
set xtics (0.1, 0.2, 0.5, 1, 2)
set xrange [0.07214270839:3.252500393]
set xlabel 'TTFT (s)'
set ylabel 'fraction of requests'
set yrange [0:1]
set ytics 0.25
set format y '%g'
plot \
    DATA index 4 using 1:2 with lines lc rgb '#0072b2' lw 1.3 title 'run', \
    DATA index 5 using 1:2 with lines lc rgb '#d55e00' lw 1.3 title 'run'
if (F eq 'svg') { print axes(3, 'x-') }
set lmargin at screen 0.58
set rmargin at screen 0.98
set bmargin at screen 0.11
set tmargin at screen 0.41
set logscale x
set format x '%g'
set xtics (0.05, 0.1, 0.2)
set xrange [0.0394768816:0.249948377]
set xlabel 'TPOT (s)'
set ylabel 'fraction of requests'
set yrange [0:1]
set ytics 0.25
set format y '%g'
plot \
    DATA index 6 using 1:2 with lines lc rgb '#0072b2' lw 1.3 title 'run', \
    DATA index 7 using 1:2 with lines lc rgb '#d55e00' lw 1.3 title 'run'
if (F eq 'svg') { print axes(4, 'x-') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
