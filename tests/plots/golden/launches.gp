# launches: kernel launches per step over time, by route
# Redraw:  gnuplot launches.gp        (data: launches.dat)
# As text: gnuplot -e "FORMATS='dumb'" launches.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'launches.dat'
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
if (F ne 'dumb' && F ne 'sixel') { set output 'launches.'.F.SUFFIX }
if (F eq 'svg') { set print 'launches.axes'.SUFFIX }
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
set logscale y
set format y '%g'
set ytics (1, 2, 5, 10, 20, 50)
set yrange [0.8:96]
set ylabel "launches per step\nif always taken"
plot \
    DATA index 1 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
    DATA index 0 using 1:2 with lines lc rgb '#000000' lw 4 title 'single', \
    DATA index 1 using 1:2 with lines lc rgb '#d55e00' lw 1.2 title 'buckets', \
    DATA index 2 using 1:2 with lines lc rgb '#e69f00' lw 2.6 title 'masked', \
    DATA index 3 using 1:2 with lines lc rgb '#0072b2' lw 1.9 title 'workqueue', \
    DATA index 4 using 1:2 with lines lc rgb '#56b4e9' lw 1.2 title 'workqueue-fused'
if (F eq 'svg') { print axes(1, '-y') }
set xrange [0:5.83161638]
set xlabel 'simulated time (s)'
set lmargin at screen 0.165
set rmargin at screen 0.97
set tmargin at screen 0.54
set bmargin at screen 0.13
set format x '%g'
unset logscale y
set ytics autofreq
set yrange [0:*]
set ylabel "launches per step\nas chosen"
set style fill solid 0.75 noborder
unset key
plot \
    DATA index 5 using 1:(0):2 with filledcurves lc rgb '#000000' title 'single', \
    DATA index 5 using 1:4:5 with filledcurves lc rgb '#0072b2' title 'workqueue', \
    DATA index 5 using 1:5:6 with filledcurves lc rgb '#56b4e9' title 'workqueue-fused'
if (F eq 'svg') { print axes(2, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
