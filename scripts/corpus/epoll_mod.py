# Registers anew for each event.
import os, select
r, w = os.pipe()
e = select.epoll()
e.register(r, select.EPOLLIN | select.EPOLLONESHOT)
for _ in range(3000):
    os.write(w, b"x")
    for fd, _ in e.poll():
        os.read(fd, 1)
        e.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
