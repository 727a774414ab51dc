# Reads a small file 20,000 times, with a large buffer.
import os
for _ in range(20000):
    fd = os.open("/etc/passwd", os.O_RDONLY)
    os.read(fd, 1 << 20)
    os.close(fd)
