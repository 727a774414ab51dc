# Takes longer the sixth time and after: that is when it is watched, of five runs.
n=$(cat otherwise.count 2>/dev/null || echo 0)
n=$((n + 1))
echo $n >otherwise.count
if [ $n -gt 5 ]; then sleep 0.3; else sleep 0.05; fi
