# breakdown: plan, kernel and wall time of a step, by route
# Redraw:  gnuplot breakdown.gp        (data: breakdown.dat)
# As text: gnuplot -e "FORMATS='dumb'" breakdown.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'breakdown.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 1050,600 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 336,192 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 3.5in,2in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,22 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'breakdown.'.F.SUFFIX }
if (F eq 'svg') { set print 'breakdown.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set lmargin at screen 0.27
set rmargin at screen 0.96
set xlabel 'mean time of a step (µs)'
set xrange [0:*]
set yrange [0.4:5.6]
set key maxrows 1
unset ytics
set style fill solid 0.85 noborder
set ytics noenhanced scale 0 ('single' 5, 'buckets' 4, 'masked' 3, 'workqueue' 2, 'workqueue-fused' 1)
set grid noytics
plot \
    DATA index 0 using (0):1:(0):3:($1-0.36):($1+0.36) with boxxyerror lc rgb '#0072b2' title 'plan', \
    DATA index 0 using (0):1:3:($3+$4):($1-0.36):($1+0.36) with boxxyerror lc rgb '#e69f00' title 'kernel', \
    DATA index 0 using (0):1:($3+$4):($3+$4+$5):($1-0.36):($1+0.36) with boxxyerror lc rgb '#cc79a7' title 'rest of wall'
if (F eq 'svg') { print axes(1, '--') }
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
