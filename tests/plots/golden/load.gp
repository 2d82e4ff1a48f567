# load: latency and throughput against load
# Redraw:  gnuplot load.gp        (data: load.dat)
# As text: gnuplot -e "FORMATS='dumb'" load.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'load.dat'
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
if (F ne 'dumb' && F ne 'sixel') { set output 'load.'.F.SUFFIX }
if (F eq 'svg') { set print 'load.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
set key maxcols 1
set xlabel 'offered load (requests/s)' noenhanced
set lmargin at screen 0.165
set rmargin at screen 0.97
set tmargin at screen 0.885
set bmargin at screen 0.575
unset xlabel
set format x ''
set arrow 1 from first 3, graph 0 to first 3, graph 1 nohead dt 2 lw 0.8
set label 1 'knee' at first 3, graph 0.06 offset 0.5,0 noenhanced
set logscale y
set yrange [*:*]
set format y '%g'
set ylabel 'TTFT, p99 (s)' noenhanced
plot \
    DATA index 0 using 1:3:4 with filledcurves lc rgb '#0072b2' notitle, \
    DATA index 1 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
    DATA index 0 using 1:2 with linespoints pt 7 ps 0.3*PS lc rgb '#0072b2' lw 1.4 title 'pool_pages 1280', \
    DATA index 1 using 1:2 with linespoints pt 7 ps 0.3*PS lc rgb '#d55e00' lw 1.4 title 'pool_pages 2560'
if (F eq 'svg') { print axes(1, '-y') }
set xlabel 'offered load (requests/s)' noenhanced
set lmargin at screen 0.165
set rmargin at screen 0.97
set tmargin at screen 0.54
set bmargin at screen 0.13
set format x '%g'
set key off
unset label 1
set arrow 2 from graph 0, first 629.99999874 to graph 1, first 629.99999874 nohead dt 3 lw 0.8
set label 2 'capacity' at graph 0.02, first 629.99999874 offset 0,-0.6 noenhanced
unset logscale y
set yrange [0:*]
set format y '%g'
set ylabel 'output tokens/s' noenhanced
plot \
    DATA index 2 using 1:3:4 with filledcurves lc rgb '#0072b2' notitle, \
    DATA index 3 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
    DATA index 2 using 1:2 with linespoints pt 7 ps 0.3*PS lc rgb '#0072b2' lw 1.4 title 'pool_pages 1280', \
    DATA index 3 using 1:2 with linespoints pt 7 ps 0.3*PS lc rgb '#d55e00' lw 1.4 title 'pool_pages 2560'
if (F eq 'svg') { print axes(2, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
