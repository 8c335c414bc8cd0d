"""What a watcher of the API server sees of WorkflowRuns: when each succeeds, and how often each is written.

Invariant: every write of an object is one event of the watch, so that events count writes; a watch that the server ends
(it does so when a watcher is slow) goes on where it stood. Trade-off: the watcher costs the API server and this process
some time, as any ``kubectl get -w`` would.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import orjson

from partita.kube.client import KubeClient
from partita.kube.connection import load_connection
from partita.kube.resources import RUNS


class Watch:
    """The runs of one namespace from one moment on."""

    def __init__(self, expected: int, version: str) -> None:
        self._expected = expected
        self.version = version
        """resourceVersion of the latest event."""
        self._succeeded: set[str] = set()
        self.writes: Counter[str] = Counter()
        """Changes of each object after it was created."""
        self.done = asyncio.Event()
        """All have succeeded."""

    @property
    def succeeded(self) -> int:
        """Runs that have succeeded."""
        return len(self._succeeded)

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
        phase = (found.get("status") or {}).get("phase")
        if phase in {"Failed", "Cancelled"}:
            raise SystemExit(f"bench: run {name} is {phase}: {found['status']}")
        if phase == "Succeeded":
            self._succeeded.add(name)
        if len(self._succeeded) == self._expected:
            self.done.set()


@asynccontextmanager
async def watching(kubeconfig: Path, client: KubeClient, namespace: str, expected: int) -> AsyncIterator[Watch]:
    """Watch the runs that are created from now on."""
    version = (await client.get(f"{RUNS.path(namespace)}?limit=1"))["metadata"]["resourceVersion"]
    watch = Watch(expected, version)
    task = asyncio.create_task(_follow(kubeconfig, namespace, watch))
    task.add_done_callback(lambda ended: None if ended.cancelled() else watch.done.set())
    try:
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(kubeconfig: Path, namespace: str, watch: Watch) -> None:
    info = load_connection(kubeconfig)
    address = f"{info.server.rstrip('/')}{RUNS.path(namespace)}"
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
