# A folder of small files: tree.py FOLDER FILES
import os, sys
for i in range(int(sys.argv[2])):
    d = f"{sys.argv[1]}/d{i // 50}"
    os.makedirs(d, exist_ok=True)
    with open(f"{d}/{i}.txt", "w") as f:
        f.write(f"line {i}\n" * (i % 300 + 1))
