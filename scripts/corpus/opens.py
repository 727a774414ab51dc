# Opens and closes every file of a folder.
import os, sys
for d, _, names in os.walk(sys.argv[1]):
    for name in names:
        os.close(os.open(os.path.join(d, name), os.O_RDONLY))
