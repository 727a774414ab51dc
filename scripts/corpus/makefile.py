# A makefile of as many objects: makefile.py N
import sys
n = int(sys.argv[1])
print("all: " + " ".join(f"c/o{i}.o" for i in range(n)))
for i in range(n):
    print(f"c/o{i}.o: c/one.c\n\tgcc -O1 -c -o c/o{i}.o c/one.c")
