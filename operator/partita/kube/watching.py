"""The watch of WorkflowRun objects: lists them, follows what happens to them, and hands each to its handler.

Purpose: what kopf does for kinds with few objects, at a fraction of the cost: an event that leaves nothing to do (the
status that was just written) makes no task. Invariant: an object is handled by one task at a time; of the events that
come meanwhile the latest is handled next, since a handler looks at the whole object, and a deletion is always the
latest. While as many objects are handled as may be, nothing is read, so that what waits stays with the API server.
Trade-off: objects that vanished while nobody watched are found by resync, not here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from partita.domain.errors import NotFoundError, UnavailableError
from partita.engine.service import Clock, TickingService
from partita.engine.supervisor import Jobs
from partita.kube.client import ContinueExpiredError
from partita.kube.resources import API_VERSION, Resource
from partita.kube.stopping import first_of
from partita.kube.streams import StreamClient

log = logging.getLogger(__name__)

Body = Mapping[str, Any]
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
STOP_SECONDS = 2.0
"""How long handlers may finish when the watch ends."""
AGAIN_SECONDS = 0.1
"""Pause between a watch that has ended and the next, so that a server which ends them at once is not pressed."""


class Handler(Protocol):
    """What is done about objects."""

    def settled(self, body: Body) -> bool:
        """Take note of an object; True when nothing is left to do about it."""
        ...

    async def changed(self, body: Body) -> None:
        """Do what is left to do."""
        ...

    async def deleted(self, body: Body) -> None:
        """The object is gone; this was its last state."""
        ...


class Feed:
    """Hands events to a handler. ``limit``: objects that are handled at the same time."""

    def __init__(self, handler: Handler, limit: int) -> None:
        self._handler = handler
        self._slots = asyncio.Semaphore(limit)
        self._busy: dict[str, tuple[str, Body] | None] = {}
        """The latest event of each object that is being handled."""
        self._jobs = Jobs("runs")

    async def put(self, kind: str, body: Body) -> None:
        """Take in one event; waits while too many objects are handled."""
        uid = body["metadata"]["uid"]
        if kind != DELETED and self._handler.settled(body) and uid not in self._busy:
            return
        if uid not in self._busy:
            await self._slots.acquire()
            self._busy[uid] = None
            self._jobs.spawn(self._work(uid, kind, body), uid)
        else:
            self._busy[uid] = kind, body

    async def end(self, seconds: float) -> None:
        """Let the handlers finish for this long, and end the others."""
        if not await self._jobs.join(seconds):
            await self._jobs.cancel()

    async def _work(self, uid: str, kind: str, body: Body) -> None:
        """Handle an object until nothing has happened to it meanwhile."""
        try:
            while True:
                await self._handle(kind, body)
                later, self._busy[uid] = self._busy[uid], None
                if later is None:
                    return
                kind, body = later
        finally:
            del self._busy[uid]
            self._slots.release()

    async def _handle(self, kind: str, body: Body) -> None:
        try:
            if kind == DELETED:
                await self._handler.deleted(body)
            elif not self._handler.settled(body):
                await self._handler.changed(body)
        except Exception:  # what comes after it must be handled all the same
            log.exception("%s/%s", body["metadata"].get("namespace"), body["metadata"]["name"])


class Watch(TickingService):
    """Watches the objects of one kind in a namespace; an empty one means all.

    A round is a list, or what lies between two of the server's bookmarks.
    """

    def __init__(
        self, client: StreamClient, resource: Resource, namespace: str, feed: Feed, *, clock: Clock | None = None
    ) -> None:
        super().__init__(f"watch-{namespace}" if namespace else "watch", clock=clock)
        self._client = client
        self._kind = resource.kind
        self._path = resource.path(namespace)
        self._feed = feed
        self._version = ""
        """Where the next watch goes on; empty before the list."""
        self._over = asyncio.Event()

    def stop(self) -> None:
        """End now, also in the middle of a watch."""
        super().stop()
        self._over.set()

    async def run(self) -> None:
        """Watch until ``stop``; raises what an API server that is away or refuses answers.

        Handlers go on meanwhile, and the next run begins where this one has ended.
        """
        try:
            await first_of(self._over, super().run())
        finally:
            if self.stopping:
                await self._feed.end(STOP_SECONDS)

    async def tick(self) -> float:
        """List, or watch from where the last one ended."""
        try:
            if not self._version:
                await self._list()
                return 0.0
            async for event in self._client.watch(self._path, self._version):
                await self._take(event["type"], event["object"])
        except ContinueExpiredError:
            log.debug("watch of %s: the server has forgotten %s; listed anew", self._path, self._version)
            self._version = ""
        except NotFoundError as error:
            raise UnavailableError(f"{error.message}: the kind is not served") from error
        return AGAIN_SECONDS

    async def _list(self) -> None:
        begun = ""
        async for page, version in self._client.whole(self._path):
            for body in page:
                await self._feed.put("LISTED", {"apiVersion": API_VERSION, "kind": self._kind, **body})
            begun = version
        self._version = begun

    async def _take(self, kind: str, body: Body) -> None:
        if kind == BOOKMARK:
            self._finish(self._begun)
        else:
            await self._feed.put(kind, body)
        self._version = str(body["metadata"]["resourceVersion"])
