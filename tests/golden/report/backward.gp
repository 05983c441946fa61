set multiplot
set border 3 lc rgb '#808080'
set tics nomirror scale 0.4
set grid ytics lc rgb '#e0e0e0' lt 1 lw 0.6
unset key
set style fill solid noborder
set format y '%g'
set lmargin 9
set rmargin 2
set bmargin 3.5
set xlabel 'tokens'
set yrange [0:188.709]
set ytics 0,50
set label 'Backward: speed' at screen 0.0152,0.9444 left front font ',12'
set label 'heads 8:2' at screen 0.0152,0.8826 left front
set object rectangle center screen 0.0197,0.8208 size screen 0.0091,0.0337 fc rgb '#3e98de' fs solid noborder
set label 'flash' at screen 0.0288,0.8208 left front
set object rectangle center screen 0.0780,0.8208 size screen 0.0091,0.0337 fc rgb '#cc76ab' fs solid noborder
set label 'block_sparse' at screen 0.0871,0.8208 left front
set object rectangle center screen 0.1756,0.8208 size screen 0.0091,0.0337 fc rgb '#7a8290' fs solid noborder
set label 'naive' at screen 0.1847,0.8208 left front
set label 'X unsupported' at screen 0.2294,0.8208 left front
set label 'N unavailable' at screen 0.3189,0.8208 left front
set label 'E out of memory' at screen 0.4085,0.8208 left front
set label 'W wrong' at screen 0.5092,0.8208 left front
set origin 0.0000,0.0000
set size 0.2500,0.7584
$bars0 << EOD
-0.2100 171.553 0
0.7900 156.051 0
EOD
$bars1 << EOD
0.2100 11.0118 0
EOD
$marks1 << EOD
1.2100 E
EOD
set label 998 'no number: block_sparse X' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'full' offset 0,0.65
set ylabel 'GFLOP/s'
set xrange [-0.6:1.6]
set xtics ('1K' 0, '4K' 1)
plot NaN notitle, $bars0 using 1:2:(0.3780) with boxes lc rgb '#3e98de' fs solid 1 notitle, $bars1 using 1:2:(0.3780) with boxes lc rgb '#7a8290' fs solid 1 notitle, $marks1 using 1:(0):2 with labels offset 0,0.5 tc rgb '#7a8290' notitle
unset label
unset object
unset arrow
set origin 0.2500,0.0000
set size 0.2500,0.7584
$bars0 << EOD
-0.2100 164.895 0
0.7900 165.207 0
EOD
$bars1 << EOD
1.2100 9.81179 0
EOD
$marks1 << EOD
0.2100 N
EOD
set label 998 'no number: block_sparse X' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'sliding_window_causal' offset 0,0.65
set ylabel ''
set xrange [-0.6:1.6]
set xtics ('1K' 0, '4K' 1)
plot NaN notitle, $bars0 using 1:2:(0.3780) with boxes lc rgb '#3e98de' fs solid 1 notitle, $bars1 using 1:2:(0.3780) with boxes lc rgb '#7a8290' fs solid 1 notitle, $marks1 using 1:(0):2 with labels offset 0,0.5 tc rgb '#7a8290' notitle
set origin 0.5000,0.0000
set size 0.2500,0.7584
$bars0 << EOD
-0.2100 168.796 0
0.7900 165.155 0
EOD
$bars1 << EOD
0.2100 9.91688 0
1.2100 9.86264 0
EOD
set label 998 'no number: block_sparse X' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'causal_document' offset 0,0.65
set ylabel ''
set xrange [-0.6:1.6]
set xtics ('1K' 0, '4K' 1)
plot NaN notitle, $bars0 using 1:2:(0.3780) with boxes lc rgb '#3e98de' fs solid 1 notitle, $bars1 using 1:2:(0.3780) with boxes lc rgb '#7a8290' fs solid 1 notitle
set origin 0.7500,0.0000
set size 0.2500,0.7584
$bars0 << EOD
0.7200 168.848 0
EOD
$marks0 << EOD
-0.2800 W
EOD
$bars1 << EOD
-0.0000 151.28 0
1.0000 139.609 0
EOD
$bars2 << EOD
0.2800 10.2186 0
1.2800 10.6322 0
EOD
set label 998 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'block_sparse' offset 0,0
set ylabel ''
set xrange [-0.6:1.6]
set xtics ('1K' 0, '4K' 1)
plot NaN notitle, $bars0 using 1:2:(0.2520) with boxes lc rgb '#3e98de' fs solid 1 notitle, $marks0 using 1:(0):2 with labels offset 0,0.5 tc rgb '#3e98de' notitle, $bars1 using 1:2:(0.2520) with boxes lc rgb '#cc76ab' fs solid 1 notitle, $bars2 using 1:2:(0.2520) with boxes lc rgb '#7a8290' fs solid 1 notitle
unset multiplot
