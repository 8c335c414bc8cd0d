"""What a watcher of the API server sees of WorkflowRuns: when each is as wanted, and how often each is written.

Invariant: every write of an object is one event of the watch, so that events count writes; a watch that the server ends
(it does so when a watcher is slow) goes on where it stood. Trade-off: the watcher costs the API server and this process
some time, as any ``kubectl get -w`` would.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import orjson

from bench.kube_stage import PATIENCE, Stage
from partita.kube.connection import load_connection

Wanted = Callable[[Mapping[str, Any]], bool]
"""Whether a status is what is waited for."""


def succeeded(status: Mapping[str, Any]) -> bool:
    """The run has succeeded."""
    return status.get("phase") == "Succeeded"


class Watch:
    """The runs of one namespace from one moment on."""

    def __init__(self, expected: int, version: str, wanted: Wanted, one: Callable[[str], None]) -> None:
        self._expected = expected
        self._wanted = wanted
        self._one = one
        self.version = version
        """resourceVersion of the latest event."""
        self._found: set[str] = set()
        self.writes: Counter[str] = Counter()
        """Changes of each object after it was created."""
        self.done = asyncio.Event()
        """All are as wanted."""

    @property
    def found(self) -> int:
        """Runs that are as wanted."""
        return len(self._found)

    @property
    def expected(self) -> int:
        """Runs that have to be."""
        return self._expected

    def see(self, line: bytes) -> None:
        """Take in one event."""
        event = orjson.loads(line)
        found = event["object"]
        if event["type"] == "ERROR":
            raise SystemExit(f"bench: the watch ended: {found.get('message')}")
        self.version = found["metadata"]["resourceVersion"]
        if event["type"] not in {"ADDED", "MODIFIED"}:
            return
        name = found["metadata"]["name"]
        if event["type"] == "MODIFIED":
            self.writes[name] += 1
        self._status(name, found.get("status") or {})

    def _status(self, name: str, status: Mapping[str, Any]) -> None:
        if status.get("phase") in {"Failed", "Cancelled"}:
            raise SystemExit(f"bench: run {name} is {status['phase']}: {status}")
        if self._wanted(status) and name not in self._found:
            self._found.add(name)
            self._one(name)
        if len(self._found) == self._expected:
            self.done.set()


async def finished(watch: Watch, patience: float = PATIENCE) -> None:
    """Wait until all runs are as wanted."""
    try:
        await asyncio.wait_for(watch.done.wait(), patience)
    except TimeoutError:
        raise SystemExit(f"bench: {watch.found} of {watch.expected} runs after {patience:.0f} s") from None


@asynccontextmanager
async def watching(
    stage: Stage, expected: int, wanted: Wanted = succeeded, one: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Watch]:
    """Watch the runs that change from now on; ``one`` is told of each that is as ``wanted``, once."""
    version = (await stage.client.get(f"{stage.path()}?limit=1"))["metadata"]["resourceVersion"]
    watch = Watch(expected, version, wanted, one)
    task = asyncio.create_task(_follow(stage, watch))
    task.add_done_callback(lambda ended: None if ended.cancelled() else watch.done.set())
    try:
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(stage: Stage, watch: Watch) -> None:
    info = load_connection(stage.cluster.kubeconfig)
    address = f"{info.server.rstrip('/')}{stage.path()}"
    connector = aiohttp.TCPConnector(ssl=info.as_ssl_context())
    limits = aiohttp.ClientTimeout(total=None)
    headers = info.as_http_headers()
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=limits) as session:
        while True:
            parameters = {"watch": "1", "resourceVersion": watch.version}
            async with session.get(address, params=parameters) as response:
                response.raise_for_status()
                await _read(response, watch)


async def _read(response: aiohttp.ClientResponse, watch: Watch) -> None:
    """Take in what comes until the server ends the watch."""
    rest = b""
    async for part in response.content.iter_any():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            watch.see(line)
