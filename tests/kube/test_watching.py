"""How events of the watch reach the handler: one at a time an object, the latest of several, so many at once."""

from __future__ import annotations

import asyncio
from typing import Any

from partita.kube.watching import Body, Feed


class Recorder:
    """A handler that notes what it gets and waits to be let on."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.now: set[str] = set()
        self.most = 0
        self.applied: dict[str, int] = {}
        self.on = asyncio.Event()
        self.fails = False

    def settled(self, body: Body) -> bool:
        return bool(self.applied.get(body["metadata"]["uid"], 0) >= body["metadata"]["generation"])

    async def changed(self, body: Body) -> None:
        await self._note(body)

    async def deleted(self, body: Body) -> None:
        await self._note(body)

    async def _note(self, body: Body) -> None:
        uid, generation = body["metadata"]["uid"], body["metadata"]["generation"]
        assert uid not in self.now
        self.now.add(uid)
        self.most = max(self.most, len(self.now))
        try:
            await self.on.wait()
            if self.fails:
                self.fails = False
                raise RuntimeError("as the test wants it")
            self.applied[uid] = generation
            self.seen.append((uid, generation))
        finally:
            self.now.remove(uid)


def body(uid: str, generation: int) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": uid, "generation": generation}}


async def test_of_the_events_that_come_meanwhile_the_latest_is_handled() -> None:
    handler = Recorder()
    feed = Feed(handler, 10)
    for generation in (1, 2, 3):
        await feed.put("MODIFIED", body("a", generation))
        await asyncio.sleep(0)
    handler.on.set()
    await feed.end(5)
    assert handler.seen == [("a", 1), ("a", 3)]


async def test_what_is_settled_reaches_no_handler() -> None:
    handler = Recorder()
    handler.applied["a"] = 2
    handler.on.set()
    feed = Feed(handler, 10)
    await feed.put("LISTED", body("a", 2))
    await feed.put("DELETED", body("a", 2))
    await feed.end(5)
    assert handler.seen == [("a", 2)]


async def test_a_deletion_comes_after_what_is_being_handled() -> None:
    handler = Recorder()
    feed = Feed(handler, 10)
    for kind, generation in (("ADDED", 1), ("MODIFIED", 2), ("DELETED", 2)):
        await feed.put(kind, body("a", generation))
        await asyncio.sleep(0)
    handler.on.set()
    await feed.end(5)
    assert handler.seen == [("a", 1), ("a", 2)]


async def test_nothing_is_read_while_as_many_objects_are_handled_as_may_be() -> None:
    handler = Recorder()
    feed = Feed(handler, 3)
    reading = asyncio.create_task(_put(feed, 20))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(handler.now) == 3
    assert not reading.done()
    handler.on.set()
    await reading
    await feed.end(5)
    assert (handler.most, len(handler.seen)) == (3, 20)


async def test_an_object_is_handled_again_after_a_fault() -> None:
    handler = Recorder()
    handler.fails = True
    feed = Feed(handler, 1)
    for generation in (1, 2):
        await feed.put("MODIFIED", body("a", generation))
        await asyncio.sleep(0)
    handler.on.set()
    await feed.end(5)
    await feed.put("ADDED", body("b", 1))
    await feed.end(5)
    assert handler.seen == [("a", 2), ("b", 1)]


async def test_handlers_that_do_not_end_are_ended() -> None:
    handler = Recorder()
    feed = Feed(handler, 1)
    await feed.put("ADDED", body("a", 1))
    await asyncio.sleep(0)
    await feed.end(0.01)
    assert not handler.now


async def _put(feed: Feed, count: int) -> None:
    for number in range(count):
        await feed.put("ADDED", body(f"u{number}", 1))
