# Asks after two pipes with high numbers, one of them ready.
import os, select
low = [os.dup(0) for _ in range(200)]
a, b = os.pipe(), os.pipe()
for i in range(500):
    os.write(a[1], b"x")
    for fd in select.select([a[0], b[0]], [], [])[0]:
        os.read(fd, 1)
