# paper_splits: time of a step by splits a row
# Redraw:  gnuplot paper_splits.gp        (data: paper_splits.dat)
# As text: gnuplot -e "FORMATS='dumb'" paper_splits.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'paper_splits.dat'
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
if (F ne 'dumb' && F ne 'sixel') { set output 'paper_splits.'.F.SUFFIX }
if (F eq 'svg') { set print 'paper_splits.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
set lmargin at screen 0.085
set rmargin at screen 0.48
set bmargin at screen 0.19
set tmargin at screen 0.8
set yrange [0:0.03]
set ytics 0.01
set format y '%g'
set title 'bucketed B1' offset 0,-0.6 noenhanced
set xlabel 'splits a row (S)'
set xtics 4
set xrange [26:38]
set ylabel 'event (ms a step)'
plot DATA index 0 using 1:2 with linespoints pt 7 ps 0.5*PS lw 1.4 lc rgb '#0072b2' title 'fixed S', DATA index 0 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#0072b2' notitle, DATA index 1 using 1:2 with lines dt 2 lw 1.4 lc rgb '#e69f00' title 'balanced'
if (F eq 'svg') { print axes(1, '--') }
set lmargin at screen 0.595
set rmargin at screen 0.985
set bmargin at screen 0.19
set tmargin at screen 0.8
set yrange [0:0.2]
set ytics 0.05
set format y '%g'
set title 'bimodal B8' offset 0,-0.6 noenhanced
set xlabel 'splits a row (S)'
set xtics 4
set xrange [14:26]
set ylabel 'event (ms a step)'
plot DATA index 2 using 1:2 with linespoints pt 7 ps 0.5*PS lw 1.4 lc rgb '#0072b2' title 'fixed S', DATA index 2 using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '#0072b2' notitle, DATA index 3 using 1:2 with lines dt 2 lw 1.4 lc rgb '#e69f00' title 'balanced'
if (F eq 'svg') { print axes(2, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
