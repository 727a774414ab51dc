# Requests on one connection: keepalive.py PORT REQUESTS
import http.client
import sys
import time

port, requests = int(sys.argv[1]), int(sys.argv[2])
while True:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.connect()
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
for _ in range(requests):
    connection.request("GET", "/")
    connection.getresponse().read()
