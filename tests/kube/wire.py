"""A wire to the API server that a test can cut or freeze, for an operator whose kubeconfig leads through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from e2e.cluster.contract import Cluster


class Wire:
    """Forwards TCP connections. ``kubeconfig`` leads through it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._config = yaml.safe_load(cluster.kubeconfig.read_text("utf-8"))
        address = urlsplit(self._config["clusters"][0]["cluster"]["server"])
        self._target = (str(address.hostname), address.port or 443)
        self._open = asyncio.Event()
        self._open.set()
        self._cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self.kubeconfig = folder / "wire.kubeconfig"

    async def start(self) -> asyncio.Server:
        """Begin to forward, and write the kubeconfig."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self._config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        self.kubeconfig.write_text(yaml.safe_dump(self._config), "utf-8")
        return server

    def freeze(self) -> None:
        """Forward nothing any more, and let everybody wait for it."""
        self._open.clear()

    def cut(self) -> None:
        """Break every connection, and every new one."""
        self._cut = True
        for writer in tuple(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        """Forward again."""
        self._cut = False
        self._open.set()

    async def close(self) -> None:
        """End every connection."""
        self.cut()
        for pump in tuple(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._cut:
                raise ConnectionError
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            self._writers.add(sink)
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


@asynccontextmanager
async def wire(cluster: Cluster, folder: Path) -> AsyncIterator[Wire]:
    """A wire for the length of the block."""
    made = Wire(cluster, folder)
    server = await made.start()
    try:
        yield made
    finally:
        await made.close()
        server.close()
