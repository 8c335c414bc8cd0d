"""A way to the server that can lose a COMMIT or a statement, or the answer to it, or stop in its tracks.

Invariant: it forwards bytes unchanged until it is armed or frozen; armed, it loses exactly one connection at a known
point; frozen, it keeps every connection and forwards nothing that clients send.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum
from urllib.parse import parse_qs, urlsplit

_COMMIT = b"COMMIT\x00"
_BIND = b"B"
"""What the message begins with that executes a statement which was prepared before."""


class Loss(Enum):
    """What to lose the next time."""

    NOTHING = "nothing"
    REQUEST = "request"
    """The COMMIT never reaches the server."""
    ANSWER = "answer"
    """The server commits, and nobody hears of it."""
    CLIENT = "client"
    """Only the client is lost: the server does not notice, and goes on with what it was sent."""


class Proxy:
    """Listens on loopback and forwards to a server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._host = query.get("host", [parts.hostname or "127.0.0.1"])[0]
        self._port = int(query.get("port", [str(parts.port or 5432)])[0])
        self._user, self._database = parts.username or "postgres", parts.path.lstrip("/")
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.loss = Loss.NOTHING
        self.lost = 0
        """Connections that were lost on purpose."""
        self.frozen = False
        self.statements = False
        """Lose the next prepared statement instead of the next COMMIT."""
        self.survivors: list[asyncio.StreamWriter] = []
        """Connections to the server whose clients are gone."""

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        if self._host.startswith("/"):
            path = f"{self._host}/.s.PGSQL.{self._port}"
            server_reader, server_writer = await asyncio.open_unix_connection(path)
        else:
            server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        session = _Session(self, reader, writer, server_reader, server_writer)
        loop = asyncio.get_running_loop()
        both = [loop.create_task(session.to_server()), loop.create_task(session.to_client())]
        self._tasks.update(both)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        session.end()
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        self._tasks.difference_update(both)

    def listen_at(self, port: int) -> None:
        """The URL for clients."""
        self.url = f"postgresql://{self._user}@127.0.0.1:{port}/{self._database}?sslmode=disable"


class _Session:
    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._reader, self._writer = reader, writer
        self._server_reader, self._server_writer = server_reader, server_writer
        self._mute = False

    async def to_server(self) -> None:
        while data := await self._reader.read(65_536):
            if self._proxy.loss is not Loss.NOTHING and self._is_it(data):
                loss, self._proxy.loss, self._mute = self._proxy.loss, Loss.NOTHING, True
                self._proxy.lost += 1
                if loss is Loss.REQUEST:
                    return
                if loss is Loss.CLIENT:
                    self._server_writer.write(data)
                    self._proxy.survivors.append(self._server_writer)
                    return
            if not self._proxy.frozen:
                self._server_writer.write(data)

    def _is_it(self, data: bytes) -> bool:
        return data.startswith(_BIND) if self._proxy.statements else data.endswith(_COMMIT)

    async def to_client(self) -> None:
        while data := await self._server_reader.read(65_536):
            if self._mute:
                return
            self._writer.write(data)

    def end(self) -> None:
        for writer in (self._writer, self._server_writer):
            if writer not in self._proxy.survivors:
                abort(writer)


def abort(writer: asyncio.StreamWriter) -> None:
    """End a connection without a word."""
    with suppress(OSError):
        writer.transport.abort()


@asynccontextmanager
async def proxy_to(url: str) -> AsyncIterator[Proxy]:
    """A proxy in front of the server of this URL."""
    proxy = Proxy(url)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.listen_at(server.sockets[0].getsockname()[1])
    try:
        yield proxy
    finally:
        server.close()
        for writer in proxy.survivors:
            abort(writer)
        for task in tuple(proxy._tasks):
            task.cancel()
        await asyncio.gather(*proxy._tasks, return_exceptions=True)
