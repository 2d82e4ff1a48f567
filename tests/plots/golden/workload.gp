# workload: the workload: request rate, lengths, sessions
# Redraw:  gnuplot workload.gp        (data: workload.dat)
# As text: gnuplot -e "FORMATS='dumb'" workload.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'workload.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 1050,900 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 336,288 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 3.5in,3in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,27 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'workload.'.F.SUFFIX }
if (F eq 'svg') { set print 'workload.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
set style fill solid 0.6 noborder
set lmargin at screen 0.15
set rmargin at screen 0.97
set bmargin at screen 0.63
set tmargin at screen 0.97
set yrange [0:150]
set ytics 50
set format y '%g'
set xrange [0:2.281701376]
set xlabel 'arrival (s)' offset 0,0.4
set ylabel 'requests/s'
plot DATA index 0 using 1:2 with fillsteps lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(1, '--') }
set lmargin at screen 0.15
set rmargin at screen 0.55
set bmargin at screen 0.14
set tmargin at screen 0.46
unset format
set format x '%.0s%c'
set logscale x
set xtics 1,10
set xrange [1:90000]
set yrange [0:1]
set ytics 0.25
set format y '%g'
set xlabel 'tokens' offset 0,0.4
set ylabel 'fraction'
set key at graph 0.02,0.98 left top vertical maxcols 1
plot DATA index 1 using 1:2 with lines lc rgb '#d55e00' lw 1.5 title 'prompt', \
     DATA index 2 using 1:2 with lines lc rgb '#009e73' lw 1.5 dt 2 title 'output'
if (F eq 'svg') { print axes(2, 'x-') }
set lmargin at screen 0.74
set rmargin at screen 0.97
set bmargin at screen 0.14
set tmargin at screen 0.46
unset logscale
set format x '%g'
set xtics autofreq
set xrange [0.4:3.6]
set xtics 1
set xlabel 'turn' offset 0,0.4
set ylabel 'sessions' offset 1,0
set yrange [0:15]
set ytics 5
set format y '%g'
plot DATA index 3 using 1:2:(0.8) with boxes lc rgb '#cc79a7' notitle
if (F eq 'svg') { print axes(3, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
