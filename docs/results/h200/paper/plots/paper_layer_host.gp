# paper_layer_host: the host's side of a decode step, by route
# Redraw:  gnuplot paper_layer_host.gp        (data: paper_layer_host.dat)
# As text: gnuplot -e "FORMATS='dumb'" paper_layer_host.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'paper_layer_host.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 2130,690 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 682,221 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 7.1in,2.3in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,22 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'paper_layer_host.'.F.SUFFIX }
if (F eq 'svg') { set print 'paper_layer_host.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
unset key
set lmargin at screen 0.075
set rmargin at screen 0.26
set bmargin at screen 0.19
set tmargin at screen 0.82
set yrange [0:200]
set ytics 50
set format y '%g'
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'plan and its upload' offset 0,-0.7
set xlabel 'rows of the batch'
set ylabel 'µs a step'
plot DATA index 0 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#009e73' notitle, \
  DATA index 1 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#56b4e9' notitle, \
  DATA index 2 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#0072b2' notitle, \
  DATA index 3 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#d55e00' notitle
if (F eq 'svg') { print axes(1, '--') }
set lmargin at screen 0.317
set rmargin at screen 0.502
set bmargin at screen 0.19
set tmargin at screen 0.82
set yrange [0:100]
set ytics 25
set format y '%g'
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'block tables' offset 0,-0.7
set xlabel 'rows of the batch'
unset ylabel
plot DATA index 4 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#009e73' notitle, \
  DATA index 5 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#56b4e9' notitle, \
  DATA index 6 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#0072b2' notitle, \
  DATA index 7 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#d55e00' notitle
if (F eq 'svg') { print axes(2, '--') }
set lmargin at screen 0.559
set rmargin at screen 0.744
set bmargin at screen 0.19
set tmargin at screen 0.82
set yrange [0:60]
set ytics 20
set format y '%g'
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'launching the graph' offset 0,-0.7
set xlabel 'rows of the batch'
unset ylabel
plot DATA index 8 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#009e73' notitle, \
  DATA index 9 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#56b4e9' notitle, \
  DATA index 10 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#0072b2' notitle, \
  DATA index 11 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#d55e00' notitle
if (F eq 'svg') { print axes(3, '--') }
set lmargin at screen 0.801
set rmargin at screen 0.986
set bmargin at screen 0.19
set tmargin at screen 0.82
set yrange [0:15000]
set ytics 5000
set format y '%.0s%c'
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'updating the graph' offset 0,-0.7
set xlabel 'rows of the batch'
unset ylabel
plot DATA index 12 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#009e73' notitle, \
  DATA index 13 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#56b4e9' notitle, \
  DATA index 14 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#0072b2' notitle, \
  DATA index 15 using 1:2 with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#d55e00' notitle
if (F eq 'svg') { print axes(4, '--') }
set lmargin at screen 0.075
set rmargin at screen 0.985
set bmargin at screen 0.913043478261
set tmargin at screen 0.991304347826
unset border
unset tics
unset xlabel
unset ylabel
unset title
unset grid
set xrange [0:1]
set yrange [0:1]
set key center center maxrows 1
plot NaN with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#009e73' title 'persistent', NaN with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#56b4e9' title 'workqueue-fused', NaN with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#0072b2' title 'workqueue', NaN with linespoints pt 7 ps 0.45*PS lw 1.3 lc rgb '#d55e00' title 'buckets'
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
