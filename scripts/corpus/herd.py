# Eight processes wait for one listener by epoll, and each does something before it accepts; 300 connections come.
import os, select, signal, socket, time
s = socket.create_server(("127.0.0.1", 0))
s.setblocking(False)
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        e = select.epoll()
        e.register(s, select.EPOLLIN)
        while True:
            for _ in e.poll():
                time.sleep(0.001)
                try:
                    s.accept()[0].close()
                except BlockingIOError:
                    pass
    children.append(pid)
time.sleep(0.2)
for _ in range(300):
    socket.create_connection(s.getsockname()).close()
    time.sleep(0.002)
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
