"""A tiny HTTP endpoint for the kubelet's probes, served by leaders and standbys alike.

``/healthz`` answers as long as the event loop runs. A lost database or API makes no operator unhealthy: restarting it
would not help.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

LINE_SECONDS = 5.0


@asynccontextmanager
async def serving(host: str, port: int, state: Callable[[], str]) -> AsyncIterator[None]:
    """Answer every request with 200 and one word; ``port`` 0 serves nothing."""
    if not port:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(LINE_SECONDS):
                await reader.readline()
                body = f"{state()}\n".encode()
                writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (TimeoutError, OSError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host, port)
    async with server:
        yield
