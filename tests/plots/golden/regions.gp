# regions: decision regions: chosen and fastest route
# Redraw:  gnuplot regions.gp        (data: regions.dat)
# As text: gnuplot -e "FORMATS='dumb'" regions.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'regions.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 1050,750 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 336,240 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 3.5in,2.5in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,23 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'regions.'.F.SUFFIX }
if (F eq 'svg') { set print 'regions.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set xrange [0:6]
set yrange [6:14]
set style fill solid 0.9 noborder
set xlabel 'decode rows'
set ylabel 'longest row (tokens)'
set key at screen 0.56,0.99 center top vertical maxrows 3 width 0
set xtics ('1' 0, '4' 2, '16' 4, '64' 6)
set ytics ('64' 6, '128' 7, '256' 8, '512' 9, '1Ki' 10, '2Ki' 11, '4Ki' 12, '8Ki' 13, '16Ki' 14)
set multiplot
set lmargin at screen 0.15
set rmargin at screen 0.54
set bmargin at screen 0.17
set tmargin at screen 0.72
set title 'chosen' offset 0,-0.8
plot \
    DATA index 0 using 1:2:(0.46*sqrt($3/100)):(0.46*sqrt($3/100)) with boxxyerror lc rgb '#000000' notitle, \
    NaN with boxes lc rgb '#000000' title 'single', \
    NaN with boxes lc rgb '#d55e00' title 'buckets', \
    NaN with boxes lc rgb '#e69f00' title 'masked', \
    DATA index 1 using 1:2:(0.46*sqrt($3/100)):(0.46*sqrt($3/100)) with boxxyerror lc rgb '#0072b2' notitle, \
    NaN with boxes lc rgb '#0072b2' title 'workqueue', \
    DATA index 2 using 1:2:(0.46*sqrt($3/100)):(0.46*sqrt($3/100)) with boxxyerror lc rgb '#56b4e9' notitle, \
    NaN with boxes lc rgb '#56b4e9' title 'workqueue-fused', \
    NaN notitle
if (F eq 'svg') { print axes(1, '--') }
set lmargin at screen 0.58
set rmargin at screen 0.97
set bmargin at screen 0.17
set tmargin at screen 0.72
set title 'fastest, where measured' offset 0,-0.8
unset ylabel
set key off
set ytics ('' 6, '' 7, '' 8, '' 9, '' 10, '' 11, '' 12, '' 13, '' 14)
plot \
    DATA index 3 using 1:2:(0.46*sqrt($3/100)):(0.46*sqrt($3/100)) with boxxyerror lc rgb '#0072b2' notitle, \
    DATA index 4 using 1:2:(0.46*sqrt($3/100)):(0.46*sqrt($3/100)) with boxxyerror lc rgb '#56b4e9' notitle, \
    NaN notitle
if (F eq 'svg') { print axes(2, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
