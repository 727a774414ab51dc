# Fails the sixth time and after: that is when it is watched, of five runs.
n=$(cat untraced.count 2>/dev/null || echo 0)
n=$((n + 1))
echo $n >untraced.count
sleep 0.05
[ $n -le 5 ]
