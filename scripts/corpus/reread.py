# Reads the first bytes of a file again and again: reread.py FILE BYTES TIMES
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
for _ in range(int(sys.argv[3])):
    os.lseek(fd, 0, 0)
    os.read(fd, int(sys.argv[2]))
