# traffic: merge traffic over KV traffic, by route
# Redraw:  gnuplot traffic.gp        (data: traffic.dat)
# As text: gnuplot -e "FORMATS='dumb'" traffic.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'traffic.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 1050,720 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 336,230 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 3.5in,2.4in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,22 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'traffic.'.F.SUFFIX }
if (F eq 'svg') { set print 'traffic.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
set logscale x 2
set format x '%.0b%B'
set xtics 1,4
set style fill transparent solid 0.12 noborder
set key at screen 0.56,0.99 center top vertical maxrows 2 width 0
set yrange [0:15]
set ytics 5
set format y '%g'
set lmargin at screen 0.16
set rmargin at screen 0.54
set bmargin at screen 0.18
set tmargin at screen 0.84
set ylabel 'merge / KV traffic (%)'
set xlabel 'decode rows'
set xrange [0.981456959399:45.6487523237]
plot \
    DATA index 0 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
    DATA index 1 using 1:3:4 with filledcurves lc rgb '#e69f00' notitle, \
    DATA index 2 using 1:3:4 with filledcurves lc rgb '#0072b2' notitle, \
    DATA index 3 using 1:3:4 with filledcurves lc rgb '#56b4e9' notitle, \
    DATA index 0 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#d55e00' lw 1.85 title 'buckets', \
    DATA index 1 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#e69f00' lw 1.5 title 'masked', \
    DATA index 2 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#0072b2' lw 1.15 title 'workqueue', \
    DATA index 3 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#56b4e9' lw 0.8 title 'workqueue-fused'
if (F eq 'svg') { print axes(1, 'x-') }
set lmargin at screen 0.59
set rmargin at screen 0.97
set bmargin at screen 0.18
set tmargin at screen 0.84
unset ylabel
set format y ''
set key off
set xlabel 'longest row (tokens)'
set xrange [105.638865777:9826.78328059]
plot \
    DATA index 4 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
    DATA index 5 using 1:3:4 with filledcurves lc rgb '#e69f00' notitle, \
    DATA index 6 using 1:3:4 with filledcurves lc rgb '#0072b2' notitle, \
    DATA index 7 using 1:3:4 with filledcurves lc rgb '#56b4e9' notitle, \
    DATA index 4 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#d55e00' lw 1.85 title 'buckets', \
    DATA index 5 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#e69f00' lw 1.5 title 'masked', \
    DATA index 6 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#0072b2' lw 1.15 title 'workqueue', \
    DATA index 7 using 1:2 with linespoints pt 7 ps 0.25*PS lc rgb '#56b4e9' lw 0.8 title 'workqueue-fused'
if (F eq 'svg') { print axes(2, 'x-') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
