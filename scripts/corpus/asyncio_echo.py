# A server and its client in one loop; what is sent is too much for a socket's buffer now and then.
import asyncio, sys

async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    for _ in range(int(sys.argv[1])):
        writer.write(b"x" * 4096)
        await reader.readexactly(4096)
    writer.close()
    server.close()

asyncio.run(main())
