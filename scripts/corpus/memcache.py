# Sets and gets over one connection: memcache.py PORT TIMES
import socket, sys, time
for _ in range(100):
    try:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.05)
for i in range(int(sys.argv[2])):
    s.sendall(b"set k%d 0 0 5\r\nhello\r\n" % i)
    s.recv(100)
    s.sendall(b"get k%d\r\n" % i)
    s.recv(100)
