# One request after another, each on a connection of its own: fetch.py PORT PATH REQUESTS
import socket
import sys

port, path, requests = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for _ in range(requests):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        while client.recv(65536):
            pass
