# Asks for connections each millisecond, beside a thread that does something else.
import socket, threading, time
threading.Thread(target=time.sleep, args=(0.5,)).start()
s = socket.create_server(("127.0.0.1", 0))
s.setblocking(False)
for _ in range(400):
    try:
        s.accept()
    except BlockingIOError:
        time.sleep(0.001)
