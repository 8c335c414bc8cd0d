"""A port on loopback that leads into a node's network.

A socket belongs to the network namespace in which it was made. The listening one is made outside and handed to this
program, which `nsenter` starts inside: what it accepts comes from outside, what it opens is inside.
Run by path: `nsenter --net … python -I forward.py FD ADDRESS PORT HOME`; HOME only marks whose process it is.
"""

import asyncio
import contextlib
import socket
import sys

CHUNK = 1 << 18


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def serve(listener: socket.socket, address: str, port: int) -> None:
    """Accept connections and pass each on, until the process is ended."""

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            inner_reader, inner_writer = await asyncio.open_connection(address, port)
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
            inner_writer.close()
        writer.close()

    server = await asyncio.start_server(passed_on, sock=listener, limit=CHUNK, backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3])))
