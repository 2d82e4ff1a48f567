# tasks: tasks and splits per step over time, by route
# Redraw:  gnuplot tasks.gp        (data: tasks.dat)
# As text: gnuplot -e "FORMATS='dumb'" tasks.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'tasks.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 1050,990 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 336,317 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 3.5in,3.3in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,30 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'tasks.'.F.SUFFIX }
if (F eq 'svg') { set print 'tasks.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
set xrange [0:5.83161638]
set xlabel 'simulated time (s)'
set lmargin at screen 0.165
set rmargin at screen 0.97
set tmargin at screen 0.844090909091
set bmargin at screen 0.575
unset xlabel
set format x ''
set ylabel 'tasks per step'
set yrange [0:600]
set ytics 200
set format y '%g'
set style fill transparent solid 0.12 noborder
plot \
    DATA index 0 using 1:3:4 with filledcurves lc rgb '#000000' notitle, \
    DATA index 1 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
    DATA index 2 using 1:3:4 with filledcurves lc rgb '#e69f00' notitle, \
    DATA index 3 using 1:3:4 with filledcurves lc rgb '#0072b2' notitle, \
    DATA index 4 using 1:3:4 with filledcurves lc rgb '#56b4e9' notitle, \
    DATA index 0 using 1:2 with lines lc rgb '#000000' lw 2.2 title 'single', \
    DATA index 1 using 1:2 with lines lc rgb '#d55e00' lw 1.85 title 'buckets', \
    DATA index 2 using 1:2 with lines lc rgb '#e69f00' lw 1.5 title 'masked', \
    DATA index 3 using 1:2 with lines lc rgb '#0072b2' lw 1.15 title 'workqueue', \
    DATA index 4 using 1:2 with lines lc rgb '#56b4e9' lw 0.8 title 'workqueue-fused'
if (F eq 'svg') { print axes(1, '--') }
set xrange [0:5.83161638]
set xlabel 'simulated time (s)'
set lmargin at screen 0.165
set rmargin at screen 0.97
set tmargin at screen 0.54
set bmargin at screen 0.13
set format x '%g'
unset key
set ylabel 'splits per row and KV head'
set yrange [0:4]
set ytics 1
set format y '%g'
set style fill transparent solid 0.12 noborder
plot \
    DATA index 5 using 1:3:4 with filledcurves lc rgb '#000000' notitle, \
    DATA index 6 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
    DATA index 7 using 1:3:4 with filledcurves lc rgb '#e69f00' notitle, \
    DATA index 8 using 1:3:4 with filledcurves lc rgb '#0072b2' notitle, \
    DATA index 9 using 1:3:4 with filledcurves lc rgb '#56b4e9' notitle, \
    DATA index 5 using 1:2 with lines lc rgb '#000000' lw 2.2 title 'single', \
    DATA index 6 using 1:2 with lines lc rgb '#d55e00' lw 1.85 title 'buckets', \
    DATA index 7 using 1:2 with lines lc rgb '#e69f00' lw 1.5 title 'masked', \
    DATA index 8 using 1:2 with lines lc rgb '#0072b2' lw 1.15 title 'workqueue', \
    DATA index 9 using 1:2 with lines lc rgb '#56b4e9' lw 0.8 title 'workqueue-fused'
if (F eq 'svg') { print axes(2, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
