# paper_layer: shares of a decode step by batch and context
# Redraw:  gnuplot paper_layer.gp        (data: paper_layer.dat)
# As text: gnuplot -e "FORMATS='dumb'" paper_layer.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'paper_layer.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 2130,1626 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 682,520 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 7.1in,5.42in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,49 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'paper_layer.'.F.SUFFIX }
if (F eq 'svg') { set print 'paper_layer.axes'.SUFFIX }
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
set rmargin at screen 0.286
set bmargin at screen 0.69864698647
set tmargin at screen 0.939114391144
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-8b, 2K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
set ylabel '% of a step'
set format y '%g'
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 0 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 0 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 0 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 0 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(1, '--') }
set lmargin at screen 0.308
set rmargin at screen 0.519
set bmargin at screen 0.69864698647
set tmargin at screen 0.939114391144
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-8b, 8K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 1 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 1 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 1 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 1 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(2, '--') }
set lmargin at screen 0.541
set rmargin at screen 0.752
set bmargin at screen 0.69864698647
set tmargin at screen 0.939114391144
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-8b, 32K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 2 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 2 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 2 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 2 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(3, '--') }
set lmargin at screen 0.774
set rmargin at screen 0.985
set bmargin at screen 0.69864698647
set tmargin at screen 0.939114391144
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-8b, bimodal' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 3 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 3 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 3 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 3 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(4, '--') }
set lmargin at screen 0.075
set rmargin at screen 0.286
set bmargin at screen 0.388068880689
set tmargin at screen 0.628536285363
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.2-1b, 2K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
set ylabel '% of a step'
set format y '%g'
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 4 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 4 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 4 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 4 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(5, '--') }
set lmargin at screen 0.308
set rmargin at screen 0.519
set bmargin at screen 0.388068880689
set tmargin at screen 0.628536285363
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.2-1b, 8K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 5 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 5 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 5 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 5 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(6, '--') }
set lmargin at screen 0.541
set rmargin at screen 0.752
set bmargin at screen 0.388068880689
set tmargin at screen 0.628536285363
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.2-1b, 32K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 6 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 6 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 6 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 6 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(7, '--') }
set lmargin at screen 0.774
set rmargin at screen 0.985
set bmargin at screen 0.388068880689
set tmargin at screen 0.628536285363
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.2-1b, bimodal' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
unset xlabel
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 7 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 7 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 7 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 7 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(8, '--') }
set lmargin at screen 0.075
set rmargin at screen 0.286
set bmargin at screen 0.0774907749077
set tmargin at screen 0.317958179582
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-70b / 8, 2K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
set ylabel '% of a step'
set format y '%g'
set xlabel 'rows of the batch'
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 8 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 8 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 8 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 8 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(9, '--') }
set lmargin at screen 0.308
set rmargin at screen 0.519
set bmargin at screen 0.0774907749077
set tmargin at screen 0.317958179582
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-70b / 8, 8K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
set xlabel 'rows of the batch'
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 9 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 9 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 9 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 9 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(10, '--') }
set lmargin at screen 0.541
set rmargin at screen 0.752
set bmargin at screen 0.0774907749077
set tmargin at screen 0.317958179582
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-70b / 8, 32K' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
set xlabel 'rows of the batch'
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 10 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 10 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 10 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 10 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(11, '--') }
set lmargin at screen 0.774
set rmargin at screen 0.985
set bmargin at screen 0.0774907749077
set tmargin at screen 0.317958179582
set xrange [-0.6:6.6]
set xtics scale 0 ('1' 0, '2' 1, '4' 2, '8' 3, '16' 4, '32' 5, '64' 6)
set title 'llama-3.1-70b / 8, bimodal' font ',6.5' offset 0,-0.8 noenhanced
set yrange [0:100]
unset ylabel
set format y ''
set xlabel 'rows of the batch'
set boxwidth 0.8
set style fill solid 0.9 noborder
set grid noxtics ytics
plot DATA index 11 using 1:($2+$3+$4+$5) with boxes lc rgb '#d55e00' notitle, \
  DATA index 11 using 1:($2+$3+$4) with boxes lc rgb '#cc79a7' notitle, \
  DATA index 11 using 1:($2+$3) with boxes lc rgb '#e69f00' notitle, \
  DATA index 11 using 1:2 with boxes lc rgb '#0072b2' notitle
if (F eq 'svg') { print axes(12, '--') }
set lmargin at screen 0.075
set rmargin at screen 0.985
set bmargin at screen 0.963099630996
set tmargin at screen 0.9963099631
unset border
unset tics
unset xlabel
unset ylabel
unset title
unset grid
set xrange [0:1]
set yrange [0:1]
set key center center maxrows 1
plot NaN with boxes lc rgb '#0072b2' title 'attention', NaN with boxes lc rgb '#e69f00' title 'matrix products', NaN with boxes lc rgb '#cc79a7' title 'small kernels', NaN with boxes lc rgb '#d55e00' title 'scheduling'
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
