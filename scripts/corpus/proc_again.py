# Reads a file of procfs 5,000 times, with a large buffer.
import os
fd = os.open("/proc/self/smaps", os.O_RDONLY)
for _ in range(3000):
    os.lseek(fd, 0, 0) if _ % 300 == 0 else None
    os.read(fd, 1 << 20)
