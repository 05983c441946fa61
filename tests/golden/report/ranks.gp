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
set xlabel 'ranks'
set yrange [0:445.5]
set ytics 0,100
set label 'Backward: speed per rank' at screen 0.0263,0.9531 left front font ',12'
set label 'heads 8:2' at screen 0.0263,0.9009 left front
set object rectangle center screen 0.0342,0.8488 size screen 0.0158,0.0284 fc rgb '#cf7f37' fs solid noborder
set label 'ring_p2p · zigzag' at screen 0.0500,0.8488 left front
set object rectangle center screen 0.2621,0.8488 size screen 0.0158,0.0284 fc rgb '#75481f' fs solid noborder
set label 'ring_p2p · balanced' at screen 0.2779,0.8488 left front
set object rectangle center screen 0.5095,0.8488 size screen 0.0158,0.0284 fc rgb '#8367b7' fs solid noborder
set label 'usp' at screen 0.5253,0.8488 left front
set object rectangle center screen 0.5913,0.8488 size screen 0.0158,0.0284 fc rgb '#2e6db9' fs solid noborder
set label 'ulysses' at screen 0.6071,0.8488 left front
set arrow from screen 0.7042,0.8488 to screen 0.7332,0.8488 nohead lw 2 lc rgb '#606060' dt 2
set label 'one device' at screen 0.7411,0.8488 left front
set arrow from screen 0.8674,0.8488 to screen 0.8963,0.8488 nohead lw 2 lc rgb '#606060' dt 2
set label '1 rank' at screen 0.9042,0.8488 left front
set label 'X unsupported' at screen 0.0263,0.7967 left front
set label 'C crash' at screen 0.1818,0.7967 left front
set label 'Grey: the same kernel without communication, on one device or one rank, at the same length if that was measured, otherwise' at screen 0.0263,0.7445 left front font ',8' tc rgb '#606060'
set label 'at the same tokens per rank; on a CPU divided by the ranks, which share its cores.' at screen 0.0263,0.6924 left front font ',8' tc rgb '#606060'
set origin 0.0000,0.0000
set size 0.5000,0.6398
$bars0 << EOD
-0.3150 400 0
0.6850 364 0
1.6850 356 0
EOD
$bars1 << EOD
-0.1050 400 0
0.8950 356 0
1.8950 348 0
EOD
$bars2 << EOD
0.1050 400 0
1.1050 372 0
EOD
$marks2 << EOD
2.1050 C
EOD
$bars3 << EOD
0.3150 400 0
1.3150 380 0
EOD
$marks3 << EOD
2.3150 X
EOD
$reference0 << EOD
0 405
1 405
2 405
EOD
set label 998 '1K tokens per rank' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'full' offset 0,0.65
set ylabel 'TFLOP/s per rank'
set xrange [-0.6:2.6]
set xtics ('1' 0, '2' 1, '4' 2)
plot NaN notitle, $bars0 using 1:2:(0.1890) with boxes lc rgb '#cf7f37' fs solid 1 notitle, $bars1 using 1:2:(0.1890) with boxes lc rgb '#75481f' fs solid 1 notitle, $bars2 using 1:2:(0.1890) with boxes lc rgb '#8367b7' fs solid 1 notitle, $marks2 using 1:(0):2 with labels offset 0,0.5 tc rgb '#8367b7' notitle, $bars3 using 1:2:(0.1890) with boxes lc rgb '#2e6db9' fs solid 1 notitle, $marks3 using 1:(0):2 with labels offset 0,0.5 tc rgb '#2e6db9' notitle, $reference0 using 1:2 with lines lc rgb '#606060' lw 1.8 dt 2 notitle
unset label
unset object
unset arrow
set origin 0.5000,0.0000
set size 0.5000,0.6398
$bars0 << EOD
-0.3150 400 0
0.6850 364 0
1.6850 356 0
EOD
$bars1 << EOD
-0.1050 400 0
0.8950 356 0
1.8950 348 0
EOD
$bars2 << EOD
0.1050 400 0
1.1050 372 0
2.1050 364 0
EOD
$bars3 << EOD
0.3150 400 0
1.3150 380 0
EOD
$marks3 << EOD
2.3150 X
EOD
$reference0 << EOD
0 400
1 400
2 400
EOD
set label 998 '1K tokens per rank' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'causal_document' offset 0,0.65
set ylabel ''
set xrange [-0.6:2.6]
set xtics ('1' 0, '2' 1, '4' 2)
plot NaN notitle, $bars0 using 1:2:(0.1890) with boxes lc rgb '#cf7f37' fs solid 1 notitle, $bars1 using 1:2:(0.1890) with boxes lc rgb '#75481f' fs solid 1 notitle, $bars2 using 1:2:(0.1890) with boxes lc rgb '#8367b7' fs solid 1 notitle, $bars3 using 1:2:(0.1890) with boxes lc rgb '#2e6db9' fs solid 1 notitle, $marks3 using 1:(0):2 with labels offset 0,0.5 tc rgb '#2e6db9' notitle, $reference0 using 1:2 with lines lc rgb '#606060' lw 1.8 dt 2 notitle
unset multiplot
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
set xlabel 'ranks'
set yrange [0:*]
set label 'Forward: exposed communication' at screen 0.0263,0.9476 left front font ',12'
set label 'heads 8:2' at screen 0.0263,0.8894 left front
set object rectangle center screen 0.0342,0.8312 size screen 0.0158,0.0317 fc rgb '#cf7f37' fs solid noborder
set label 'ring_p2p · zigzag' at screen 0.0500,0.8312 left front
set object rectangle center screen 0.2621,0.8312 size screen 0.0158,0.0317 fc rgb '#75481f' fs solid noborder
set label 'ring_p2p · balanced' at screen 0.2779,0.8312 left front
set object rectangle center screen 0.5095,0.8312 size screen 0.0158,0.0317 fc rgb '#8367b7' fs solid noborder
set label 'usp' at screen 0.5253,0.8312 left front
set object rectangle center screen 0.5913,0.8312 size screen 0.0158,0.0317 fc rgb '#2e6db9' fs solid noborder
set label 'ulysses' at screen 0.6071,0.8312 left front
set label 'X unsupported' at screen 0.7042,0.8312 left front
set label 'Full colour: the steps of the slowest rank without communication. Light: what communication and waiting add to them.' at screen 0.0263,0.7730 left front font ',8' tc rgb '#606060'
set origin 0.0000,0.0000
set size 0.5000,0.7143
$bars0 << EOD
-0.3150 0.4 0.4
0.6850 0.879121 0.791209
1.6850 1.79775 1.61798
EOD
$bars1 << EOD
-0.1050 0.4 0.4
0.8950 0.898876 0.808989
1.8950 1.83908 1.65517
EOD
$bars2 << EOD
0.1050 0.4 0.4
1.1050 0.860215 0.774194
2.1050 1.75824 1.58242
EOD
$bars3 << EOD
0.3150 0.4 0.4
1.3150 0.842105 0.757895
EOD
$marks3 << EOD
2.3150 X
EOD
set label 998 '1K tokens per rank; no number: ulysses 4 X' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'full' offset 0,0.65
set ylabel 'ms'
set xrange [-0.6:2.6]
set xtics ('1' 0, '2' 1, '4' 2)
plot NaN notitle, $bars0 using 1:2:(0.1890) with boxes lc rgb '#cf7f37' fs solid 0.3 notitle, $bars0 using 1:3:(0.1890) with boxes lc rgb '#cf7f37' notitle, $bars1 using 1:2:(0.1890) with boxes lc rgb '#75481f' fs solid 0.3 notitle, $bars1 using 1:3:(0.1890) with boxes lc rgb '#75481f' notitle, $bars2 using 1:2:(0.1890) with boxes lc rgb '#8367b7' fs solid 0.3 notitle, $bars2 using 1:3:(0.1890) with boxes lc rgb '#8367b7' notitle, $bars3 using 1:2:(0.1890) with boxes lc rgb '#2e6db9' fs solid 0.3 notitle, $bars3 using 1:3:(0.1890) with boxes lc rgb '#2e6db9' notitle, $marks3 using 1:(0):2 with labels offset 0,0.5 tc rgb '#2e6db9' notitle
unset label
unset object
unset arrow
set origin 0.5000,0.0000
set size 0.5000,0.7143
$bars0 << EOD
-0.3150 0.4 0.4
0.6850 0.879121 0.791209
1.6850 1.79775 1.61798
EOD
$bars1 << EOD
-0.1050 0.4 0.4
0.8950 0.898876 0.808989
1.8950 1.83908 1.65517
EOD
$bars2 << EOD
0.1050 0.4 0.4
1.1050 0.860215 0.774194
2.1050 1.75824 1.58242
EOD
$bars3 << EOD
0.3150 0.4 0.4
1.3150 0.842105 0.757895
EOD
$marks3 << EOD
2.3150 X
EOD
set label 998 '1K tokens per rank; no number: ulysses 4 X' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'causal_document' offset 0,0.65
set ylabel ''
set xrange [-0.6:2.6]
set xtics ('1' 0, '2' 1, '4' 2)
plot NaN notitle, $bars0 using 1:2:(0.1890) with boxes lc rgb '#cf7f37' fs solid 0.3 notitle, $bars0 using 1:3:(0.1890) with boxes lc rgb '#cf7f37' notitle, $bars1 using 1:2:(0.1890) with boxes lc rgb '#75481f' fs solid 0.3 notitle, $bars1 using 1:3:(0.1890) with boxes lc rgb '#75481f' notitle, $bars2 using 1:2:(0.1890) with boxes lc rgb '#8367b7' fs solid 0.3 notitle, $bars2 using 1:3:(0.1890) with boxes lc rgb '#8367b7' notitle, $bars3 using 1:2:(0.1890) with boxes lc rgb '#2e6db9' fs solid 0.3 notitle, $bars3 using 1:3:(0.1890) with boxes lc rgb '#2e6db9' notitle, $marks3 using 1:(0):2 with labels offset 0,0.5 tc rgb '#2e6db9' notitle
unset multiplot
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
set xlabel 'ranks'
set yrange [0:1698.4]
set ytics 0,500
set label 'Forward: bytes sent in one pass' at screen 0.0263,0.9505 left front font ',12'
set label 'heads 8:2' at screen 0.0263,0.8955 left front
set object rectangle center screen 0.0342,0.8405 size screen 0.0158,0.0300 fc rgb '#cf7f37' fs solid noborder
set label 'ring_p2p · zigzag' at screen 0.0500,0.8405 left front
set object rectangle center screen 0.2621,0.8405 size screen 0.0158,0.0300 fc rgb '#75481f' fs solid noborder
set label 'ring_p2p · balanced' at screen 0.2779,0.8405 left front
set object rectangle center screen 0.5095,0.8405 size screen 0.0158,0.0300 fc rgb '#8367b7' fs solid noborder
set label 'usp' at screen 0.5253,0.8405 left front
set object rectangle center screen 0.5913,0.8405 size screen 0.0158,0.0300 fc rgb '#2e6db9' fs solid noborder
set label 'ulysses' at screen 0.6071,0.8405 left front
set label 'X unsupported' at screen 0.7042,0.8405 left front
set label 'Counted, by the rank that sends most. Stroke: the scheme’s formula. Diamond: lower bound for this mask and sharding if' at screen 0.0263,0.7855 left front font ',8' tc rgb '#606060'
set label 'queries stay in place, mean over ranks.' at screen 0.0263,0.7305 left front font ',8' tc rgb '#606060'
set origin 0.0000,0.0000
set size 0.5000,0.6750
$bars0 << EOD
-0.3150 0 0
0.6850 1024 0
1.6850 1536 0
EOD
$strokes0 << EOD
-0.3150 0
0.6850 1024
1.6850 1536
EOD
$diamonds0 << EOD
-0.3150 0
0.6850 512
1.6850 768
EOD
$bars1 << EOD
-0.1050 0 0
0.8950 1024 0
1.8950 1536 0
EOD
$strokes1 << EOD
-0.1050 0
0.8950 1024
1.8950 1536
EOD
$diamonds1 << EOD
-0.1050 0
0.8950 512
1.8950 768
EOD
$bars2 << EOD
0.1050 0 0
1.1050 1024 0
2.1050 1536 0
EOD
$strokes2 << EOD
0.1050 0
1.1050 1024
2.1050 1536
EOD
$diamonds2 << EOD
0.1050 0
1.1050 512
2.1050 768
EOD
$bars3 << EOD
0.3150 0 0
1.3150 1024 0
EOD
$strokes3 << EOD
0.3150 0
1.3150 1024
EOD
$marks3 << EOD
2.3150 X
EOD
$diamonds3 << EOD
0.3150 0
1.3150 512
EOD
set label 998 '1K tokens per rank' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'full' offset 0,0.65
set ylabel 'KiB'
set xrange [-0.6:2.6]
set xtics ('1' 0, '2' 1, '4' 2)
plot NaN notitle, $bars0 using 1:2:(0.1890) with boxes lc rgb '#cf7f37' fs solid 1 notitle, $strokes0 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $diamonds0 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds0 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle, $bars1 using 1:2:(0.1890) with boxes lc rgb '#75481f' fs solid 1 notitle, $strokes1 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $diamonds1 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds1 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle, $bars2 using 1:2:(0.1890) with boxes lc rgb '#8367b7' fs solid 1 notitle, $strokes2 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $diamonds2 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds2 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle, $bars3 using 1:2:(0.1890) with boxes lc rgb '#2e6db9' fs solid 1 notitle, $strokes3 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $marks3 using 1:(0):2 with labels offset 0,0.5 tc rgb '#2e6db9' notitle, $diamonds3 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds3 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle
unset label
unset object
unset arrow
set origin 0.5000,0.0000
set size 0.5000,0.6750
$bars0 << EOD
-0.3150 0 0
0.6850 1024 0
1.6850 1544 0
EOD
$strokes0 << EOD
-0.3150 0
0.6850 1024
1.6850 1536
EOD
$diamonds0 << EOD
-0.3150 0
0.6850 512
1.6850 768
EOD
$bars1 << EOD
-0.1050 0 0
0.8950 1024 0
1.8950 1536 0
EOD
$strokes1 << EOD
-0.1050 0
0.8950 1024
1.8950 1536
EOD
$diamonds1 << EOD
-0.1050 0
0.8950 512
1.8950 768
EOD
$bars2 << EOD
0.1050 0 0
1.1050 1024 0
2.1050 1536 0
EOD
$strokes2 << EOD
0.1050 0
1.1050 1024
2.1050 1536
EOD
$diamonds2 << EOD
0.1050 0
1.1050 512
2.1050 768
EOD
$bars3 << EOD
0.3150 0 0
1.3150 1024 0
EOD
$strokes3 << EOD
0.3150 0
1.3150 1024
EOD
$marks3 << EOD
2.3150 X
EOD
$diamonds3 << EOD
0.3150 0
1.3150 512
EOD
set label 998 '1K tokens per rank' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set label 999 '' at graph 0.5,1.030 center font ',7' tc rgb '#606060'
set title 'causal_document' offset 0,0.65
set ylabel ''
set xrange [-0.6:2.6]
set xtics ('1' 0, '2' 1, '4' 2)
plot NaN notitle, $bars0 using 1:2:(0.1890) with boxes lc rgb '#cf7f37' fs solid 1 notitle, $strokes0 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $diamonds0 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds0 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle, $bars1 using 1:2:(0.1890) with boxes lc rgb '#75481f' fs solid 1 notitle, $strokes1 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $diamonds1 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds1 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle, $bars2 using 1:2:(0.1890) with boxes lc rgb '#8367b7' fs solid 1 notitle, $strokes2 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $diamonds2 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds2 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle, $bars3 using 1:2:(0.1890) with boxes lc rgb '#2e6db9' fs solid 1 notitle, $strokes3 using ($1-0.0945):2:(0.1890):(0) with vectors nohead lc rgb '#000000' lw 2 notitle, $marks3 using 1:(0):2 with labels offset 0,0.5 tc rgb '#2e6db9' notitle, $diamonds3 using 1:2 with points pt 13 ps 0.7 lc rgb '#ffffff' notitle, $diamonds3 using 1:2 with points pt 12 ps 0.7 lc rgb '#404040' notitle
unset multiplot
