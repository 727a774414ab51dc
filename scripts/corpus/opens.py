# Opens and closes every file of a folder, as often as told: opens.py FOLDER TIMES
import os, sys
for _ in range(int(sys.argv[2])):
    for d, _, names in os.walk(sys.argv[1]):
        for name in names:
            os.close(os.open(os.path.join(d, name), os.O_RDONLY))
