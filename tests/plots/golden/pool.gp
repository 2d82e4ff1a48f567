# pool: page pool: which ids are held, and how full pages are
# Redraw:  gnuplot pool.gp        (data: pool.dat)
# As text: gnuplot -e "FORMATS='dumb'" pool.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'pool.dat'
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
if (F ne 'dumb' && F ne 'sixel') { set output 'pool.'.F.SUFFIX }
if (F eq 'svg') { set print 'pool.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set palette defined (0 '#e8f1f8', 0.25 '#a6cbe3', 0.5 '#56a0cf', 0.75 '#0072b2', 1 '#06304f')
set style fill solid 1
set colorbox user size 0.02,0.4
set multiplot
set xrange [0:0.130023424]
set xlabel 'simulated time (s)'
set lmargin at screen 0.165
set rmargin at screen 0.97
set tmargin at screen 0.985
set bmargin at screen 0.575
unset xlabel
set format x ''
set rmargin at screen 0.82
set colorbox user origin 0.84,0.58 size 0.025,0.4
set cbrange [0:1]
set cblabel 'share held'
set ylabel 'page id'
set yrange [0:64]
if (F eq 'dumb') {
unset colorbox
plot DATA index 0 using 1:($3 > 0 ? $2 : NaN) with points pt '#' notitle
} else {
plot DATA index 0 using 1:2:3 with image notitle
}
if (F eq 'svg') { print axes(1, '--') }
set xrange [0:0.130023424]
set xlabel 'simulated time (s)'
set lmargin at screen 0.165
set rmargin at screen 0.97
set tmargin at screen 0.54
set bmargin at screen 0.13
set format x '%g'
set yrange [0:100]
set ytics 25
set format y '%g'
set rmargin at screen 0.82
set ylabel 'percent'
set key at graph 0.98,0.06 right bottom vertical noreverse opaque samplen 1
set style fill transparent solid 0.22 noborder
plot DATA index 1 using 1:3:4 with filledcurves lc rgb '#009e73' notitle, \
     DATA index 2 using 1:3:4 with filledcurves lc rgb '#d55e00' notitle, \
     DATA index 1 using 1:2 with lines lc rgb '#009e73' lw 1.4 title 'pages used / pool', \
     DATA index 2 using 1:2 with lines lc rgb '#d55e00' lw 1.4 title 'tokens held / slots of them'
if (F eq 'svg') { print axes(2, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
