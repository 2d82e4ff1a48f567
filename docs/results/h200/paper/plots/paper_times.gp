# paper_times: event and wall time of a step: this machine, and as published
# Redraw:  gnuplot paper_times.gp        (data: paper_times.dat)
# As text: gnuplot -e "FORMATS='dumb'" paper_times.gp

if (!exists("FORMATS")) FORMATS = 'png svg pdf'
if (!exists("SUFFIX")) SUFFIX = ''
DATA = 'paper_times.dat'
axes(panel, logs) = sprintf('%d %s %g %g %g %g %g %g %g %g %g %g', panel, logs, \
    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \
    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, 1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \
    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)

do for [F in FORMATS] {
if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }
if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }
if (F eq 'png') { set terminal pngcairo size 2130,1380 font 'sans,7.5' fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }
if (F eq 'svg') { set terminal svg size 682,442 font 'sans-serif,9.5' linewidth 1 dashlength 0.8 dynamic }
if (F eq 'pdf') { set terminal pdfcairo size 7.1in,4.6in font 'sans,7.5' fontscale 0.7 linewidth 1 dashlength 0.8 }
if (F eq 'dumb') { set terminal dumb size 79,41 noenhanced }
if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }
if (F ne 'dumb' && F ne 'sixel') { set output 'paper_times.'.F.SUFFIX }
if (F eq 'svg') { set print 'paper_times.axes'.SUFFIX }
reset
PS = F eq 'png' ? 3 : 1
set border 3 linewidth 0.6
set tics nomirror scale 0.5
set grid back linewidth 0.4 linecolor rgb '#d8d8d8'
set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 spacing 0.95
set style fill transparent solid 0.22 noborder
set multiplot
set lmargin at screen 0.085
set rmargin at screen 0.62
set bmargin at screen 0.6
set tmargin at screen 0.935
set key at screen 0.34,0.005 bottom center maxrows 2
set xtics font ',5.5'
set yrange [0:0.6]
set ytics 0.2
set format y '%g'
set xrange [-0.6:5.6]
set xtics scale 0 ("bucketed\nB1" 0, "homog.\nB4" 1, "bimodal\nB4" 2, "bimodal\nB8" 3, "uniform\nB8" 4, "zipf\nB8" 5)
set ylabel 'event (ms a step)'
set title 'this machine: NVIDIA H200' offset 0,-0.6 noenhanced
set boxwidth 0.126666666667
set style fill solid 0.85 noborder
set grid noxtics ytics
unset label 1
plot DATA index 0 using 1:2 with boxes lc rgb '#000000' notitle, DATA index 0 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 1 using 1:2 with boxes lc rgb '#d55e00' notitle, DATA index 1 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 2 using 1:2 with boxes lc rgb '#0072b2' notitle, DATA index 2 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 3 using 1:2 with boxes lc rgb '#56b4e9' notitle, DATA index 3 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 4 using 1:2 with boxes lc rgb '#e69f00' notitle, DATA index 4 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 5 using 1:2 with boxes lc rgb '#009e73' notitle, DATA index 5 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle
if (F eq 'svg') { print axes(1, '--') }
set lmargin at screen 0.7
set rmargin at screen 0.985
set bmargin at screen 0.6
set tmargin at screen 0.935
set key at screen 0.84,0.005 bottom center maxrows 3
set xtics font ',5.5'
set yrange [0:3]
set ytics 1
set format y '%g'
set xrange [-0.6:5.6]
set xtics scale 0 ("bucketed\nB1" 0, "homog.\nB4" 1, "bimodal\nB4" 2, "bimodal\nB8" 3, "uniform\nB8" 4, "zipf\nB8" 5)
set ylabel 'event (ms a step)'
set title 'published, RTX 3060' offset 0,-0.6 noenhanced
set boxwidth 0.253333333333
set style fill solid 0.85 noborder
set grid noxtics ytics
unset label 1
plot DATA index 6 using 1:2 with boxes lc rgb '#cc79a7' notitle, DATA index 6 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 7 using 1:2 with boxes lc rgb '#d55e00' notitle, DATA index 7 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 8 using 1:2 with boxes lc rgb '#0072b2' notitle, DATA index 8 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle
if (F eq 'svg') { print axes(2, '--') }
set lmargin at screen 0.085
set rmargin at screen 0.62
set bmargin at screen 0.21
set tmargin at screen 0.545
set key at screen 0.34,0.005 bottom center maxrows 2
set xtics font ',5.5'
set yrange [0:0.6]
set ytics 0.2
set format y '%g'
set xrange [-0.6:5.6]
set xtics scale 0 ("bucketed\nB1" 0, "homog.\nB4" 1, "bimodal\nB4" 2, "bimodal\nB8" 3, "uniform\nB8" 4, "zipf\nB8" 5)
set ylabel 'wall (ms a step)'
set title '' offset 0,-0.6 noenhanced
set boxwidth 0.126666666667
set style fill solid 0.85 noborder
set grid noxtics ytics
unset label 1
plot DATA index 9 using 1:2 with boxes lc rgb '#000000' title 'single', DATA index 9 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 10 using 1:2 with boxes lc rgb '#d55e00' title 'buckets, published S', DATA index 10 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 11 using 1:2 with boxes lc rgb '#0072b2' title 'workqueue, published S', DATA index 11 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 12 using 1:2 with boxes lc rgb '#56b4e9' title 'workqueue-fused, published S', DATA index 12 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 13 using 1:2 with boxes lc rgb '#e69f00' title 'workqueue, balanced', DATA index 13 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 14 using 1:2 with boxes lc rgb '#009e73' title 'persistent', DATA index 14 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle
if (F eq 'svg') { print axes(3, '--') }
set lmargin at screen 0.7
set rmargin at screen 0.985
set bmargin at screen 0.21
set tmargin at screen 0.545
set key at screen 0.84,0.005 bottom center maxrows 3
set xtics font ',5.5'
set yrange [0:3]
set ytics 1
set format y '%g'
set xrange [-0.6:5.6]
set xtics scale 0 ("bucketed\nB1" 0, "homog.\nB4" 1, "bimodal\nB4" 2, "bimodal\nB8" 3, "uniform\nB8" 4, "zipf\nB8" 5)
set ylabel 'wall (ms a step)'
set title '' offset 0,-0.6 noenhanced
set boxwidth 0.253333333333
set style fill solid 0.85 noborder
set grid noxtics ytics
unset label 1
plot DATA index 15 using 1:2 with boxes lc rgb '#cc79a7' title 'FlashInfer 0.2.5', DATA index 15 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 16 using 1:2 with boxes lc rgb '#d55e00' title 'buckets', DATA index 16 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle, \
  DATA index 17 using 1:2 with boxes lc rgb '#0072b2' title 'workqueue', DATA index 17 using 1:($2-$3):(0):(2*$3) with vectors nohead lw 0.9 lc rgb '#000000' notitle
if (F eq 'svg') { print axes(4, '--') }
unset multiplot
if (F eq 'svg') { unset print }
if (F ne 'dumb' && F ne 'sixel') { unset output }
}
