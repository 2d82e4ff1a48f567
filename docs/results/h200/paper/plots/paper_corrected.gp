# paper_corrected: read rate of one row that is as long as it is called
# Redraw:  gnuplot paper_corrected.gp        (data: paper_corrected.dat)
# As text: gnuplot -e "FORMATS='dumb'" paper_corrected.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'paper_corrected.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 2130,840 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 682,269 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 7.1in,2.8in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,25 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'paper_corrected.'.F.SUFFIX }
if (F eq 'svg') { set print 'paper_corrected.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set key maxrows 2
set lmargin at screen 0.085
set rmargin at screen 0.985
set xlabel 'context (Ki tokens)'
set logscale x 2
set xrange [13:160]
set ylabel 'K and V read (GB/s)'
set yrange [0:6000]
set ytics 2000
set format y '%g'
plot DATA index 0 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#000000' title 'single', DATA index 0 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#000000' notitle, \
  DATA index 1 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#d55e00' title 'buckets, S = 32', DATA index 1 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#d55e00' notitle, \
  DATA index 2 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#0072b2' title 'workqueue, S = 24', DATA index 2 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#0072b2' notitle, \
  DATA index 3 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#e69f00' title 'workqueue, balanced', DATA index 3 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#e69f00' notitle, \
  DATA index 4 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#56b4e9' title 'workqueue-fused, balanced', DATA index 4 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#56b4e9' notitle, \
  DATA index 5 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#009e73' title 'persistent', DATA index 5 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#009e73' notitle
if (F eq 'svg') { print axes(1, 'x-') }
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
