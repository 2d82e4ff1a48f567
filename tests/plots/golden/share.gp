# share: route share against batch size and against the longest row
# Redraw:  gnuplot share.gp        (data: share.dat)
# As text: gnuplot -e "FORMATS='dumb'" share.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'share.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 1050,690 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 336,221 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 3.5in,2.3in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,22 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'share.'.F.SUFFIX }
if (F eq 'svg') { set print 'share.axes'.SUFFIX }
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
set xtics 2,4
set style fill solid 0.85 noborder
set yrange [0:100]
set tmargin at screen 0.84
set bmargin at screen 0.21
set lmargin at screen 0.165
set rmargin at screen 0.53
set ylabel 'share of steps (%)' offset 0.8,0
set xlabel 'decode rows in the step'
set key at screen 0.56,0.99 center top vertical maxrows 2 width 0
plot \
    DATA index 0 using ($1*1.42):(0):($1*1.05):($1*1.9):(0):3 with boxxyerror lc rgb '#000000' title 'single', \
    DATA index 0 using ($1*1.42):5:($1*1.05):($1*1.9):5:6 with boxxyerror lc rgb '#0072b2' title 'workqueue', \
    DATA index 0 using ($1*1.42):6:($1*1.05):($1*1.9):6:7 with boxxyerror lc rgb '#56b4e9' title 'workqueue-fused'
if (F eq 'svg') { print axes(1, 'x-') }
set lmargin at screen 0.59
set rmargin at screen 0.97
unset ylabel
set format y ''
set xlabel 'longest row (tokens)'
unset key
plot \
    DATA index 1 using ($1*1.42):(0):($1*1.05):($1*1.9):(0):3 with boxxyerror lc rgb '#000000' title 'single', \
    DATA index 1 using ($1*1.42):5:($1*1.05):($1*1.9):5:6 with boxxyerror lc rgb '#0072b2' title 'workqueue', \
    DATA index 1 using ($1*1.42):6:($1*1.05):($1*1.9):6:7 with boxxyerror lc rgb '#56b4e9' title 'workqueue-fused'
if (F eq 'svg') { print axes(2, 'x-') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
