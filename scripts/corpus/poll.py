# Asks after 200 pipes to find one ready, 500 times.
import os, select
pipes = [os.pipe() for _ in range(200)]
p = select.poll()
for r, _ in pipes:
    p.register(r, select.POLLIN)
for i in range(500):
    os.write(pipes[i % 200][1], b"x")
    for fd, _ in p.poll():
        os.read(fd, 1)
