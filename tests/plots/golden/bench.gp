# bench: kernels cell by cell: batch size by context
# Redraw:  gnuplot bench.gp        (data: bench.dat)
# As text: gnuplot -e "FORMATS='dumb'" bench.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'bench.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 2130,1170 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 682,374 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 7.1in,3.9in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,35 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'bench.'.F.SUFFIX }
if (F eq 'svg') { set print 'bench.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
TOP = 329.92
set palette defined (0 '#e8f1f8', 0.25 '#a6cbe3', 0.5 '#56a0cf', 0.75 '#0072b2', 1 '#06304f')
set cbrange [0:TOP]
set style fill solid 1 noborder
unset grid
set colorbox user origin 0.9,0.2 size 0.012,0.6
set cblabel 'KV read rate (GB/s)' offset 1,0
set multiplot
set lmargin at screen 0.065
set rmargin at screen 0.33
set bmargin at screen 0.619743589744
set tmargin at screen 0.939487179487
set xrange [-0.5:3.5]
set xtics scale 0 ('' 0, '' 1, '' 2, '' 3)
set yrange [-0.5:3.5]
set ytics scale 0 ('1' 0, '4' 1, '8' 2, '16' 3)
unset xlabel
set ylabel 'batch (rows)' offset 0,0
set title 'single' offset 0,-0.7 noenhanced
plot DATA index 0 using 1:2:(0.48):(0.48):3 with boxxyerror lc palette notitle, \
     DATA index 0 using 1:2:(sprintf($3 >= 100 ? '%.0f' : '%.3g', $3)):($3 > 0.55 * TOP ? 0xffffff : 0x000000) with labels font ',5.5' tc rgb variable notitle
if (F eq 'svg') { print axes(1, '--') }
set lmargin at screen 0.345
set rmargin at screen 0.61
set bmargin at screen 0.619743589744
set tmargin at screen 0.939487179487
set xrange [-0.5:3.5]
set xtics scale 0 ('' 0, '' 1, '' 2, '' 3)
set yrange [-0.5:3.5]
set ytics scale 0 ('' 0, '' 1, '' 2, '' 3)
unset xlabel
unset ylabel
unset colorbox
set title 'buckets' offset 0,-0.7 noenhanced
plot DATA index 1 using 1:2:(0.48):(0.48):3 with boxxyerror lc palette notitle, \
     DATA index 1 using 1:2:(sprintf($3 >= 100 ? '%.0f' : '%.3g', $3)):($3 > 0.55 * TOP ? 0xffffff : 0x000000) with labels font ',5.5' tc rgb variable notitle
if (F eq 'svg') { print axes(2, '--') }
set lmargin at screen 0.625
set rmargin at screen 0.89
set bmargin at screen 0.619743589744
set tmargin at screen 0.939487179487
set xrange [-0.5:3.5]
set xtics scale 0 ('1Ki' 0, '4Ki' 1, '16Ki' 2, '64Ki' 3)
set yrange [-0.5:3.5]
set ytics scale 0 ('' 0, '' 1, '' 2, '' 3)
set xlabel 'context (tokens), or lengths'
unset ylabel
unset colorbox
set title 'masked' offset 0,-0.7 noenhanced
plot DATA index 2 using 1:2:(0.48):(0.48):3 with boxxyerror lc palette notitle, \
     DATA index 2 using 1:2:(sprintf($3 >= 100 ? '%.0f' : '%.3g', $3)):($3 > 0.55 * TOP ? 0xffffff : 0x000000) with labels font ',5.5' tc rgb variable notitle
if (F eq 'svg') { print axes(3, '--') }
set lmargin at screen 0.065
set rmargin at screen 0.33
set bmargin at screen 0.189743589744
set tmargin at screen 0.509487179487
set xrange [-0.5:3.5]
set xtics scale 0 ('1Ki' 0, '4Ki' 1, '16Ki' 2, '64Ki' 3)
set yrange [-0.5:3.5]
set ytics scale 0 ('1' 0, '4' 1, '8' 2, '16' 3)
set xlabel 'context (tokens), or lengths'
set ylabel 'batch (rows)' offset 0,0
unset colorbox
set title 'workqueue' offset 0,-0.7 noenhanced
plot DATA index 3 using 1:2:(0.48):(0.48):3 with boxxyerror lc palette notitle, \
     DATA index 3 using 1:2:(sprintf($3 >= 100 ? '%.0f' : '%.3g', $3)):($3 > 0.55 * TOP ? 0xffffff : 0x000000) with labels font ',5.5' tc rgb variable notitle
if (F eq 'svg') { print axes(4, '--') }
set lmargin at screen 0.345
set rmargin at screen 0.61
set bmargin at screen 0.189743589744
set tmargin at screen 0.509487179487
set xrange [-0.5:3.5]
set xtics scale 0 ('1Ki' 0, '4Ki' 1, '16Ki' 2, '64Ki' 3)
set yrange [-0.5:3.5]
set ytics scale 0 ('' 0, '' 1, '' 2, '' 3)
set xlabel 'context (tokens), or lengths'
unset ylabel
unset colorbox
set title 'workqueue-fused' offset 0,-0.7 noenhanced
plot DATA index 4 using 1:2:(0.48):(0.48):3 with boxxyerror lc palette notitle, \
     DATA index 4 using 1:2:(sprintf($3 >= 100 ? '%.0f' : '%.3g', $3)):($3 > 0.55 * TOP ? 0xffffff : 0x000000) with labels font ',5.5' tc rgb variable notitle
if (F eq 'svg') { print axes(5, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
