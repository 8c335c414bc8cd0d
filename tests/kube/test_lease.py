"""Leadership without a cluster: a store in memory, a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from partita.domain.errors import ConflictError, NotFoundError, UnavailableError
from partita.kube.lease import Lease, LeaseTimes


class MemoryStore:
    """The Lease object; ``frozen`` makes every request hang, ``broken`` makes it fail."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.version = 0
        self.frozen = False
        self.broken = False
        self.forget_answer = False

    async def load(self) -> dict[str, Any]:
        await self._reach()
        if self.body is None:
            raise NotFoundError("no lease")
        return self.body

    async def save(self, body: dict[str, Any]) -> dict[str, Any]:
        await self._reach()
        known = self.body["metadata"]["resourceVersion"] if self.body else None
        if body.get("metadata", {}).get("resourceVersion") != known:
            raise ConflictError("someone was faster")
        self.version += 1
        self.body = {**body, "metadata": {"resourceVersion": str(self.version)}}
        if self.forget_answer:
            self.forget_answer = False
            raise UnavailableError("the answer was lost")
        return self.body

    async def _reach(self) -> None:
        if self.frozen:
            await asyncio.Event().wait()
        if self.broken:
            raise UnavailableError("connection refused")

    @property
    def holder(self) -> str:
        assert self.body is not None
        return str(self.body["spec"]["holderIdentity"])


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def time() -> Time:
    return Time()


def candidate(store: MemoryStore, time: Time, identity: str, *, request: float = 0.05) -> Lease:
    times = LeaseTimes(request=request)
    return Lease(store, identity, times, clock=time, sleep=time.sleep)


async def test_the_first_candidate_leads_at_once(store: MemoryStore, time: Time) -> None:
    lease = candidate(store, time, "a")
    await lease.acquire()
    assert lease.held
    assert store.holder == "a"
    assert store.body is not None
    assert store.body["spec"]["leaseDurationSeconds"] == 15


async def test_a_second_candidate_waits_until_the_holder_has_been_silent(store: MemoryStore, time: Time) -> None:
    await candidate(store, time, "a").acquire()
    begun = time.now
    second = candidate(store, time, "b")
    await second.acquire()
    assert store.holder == "b"
    assert 15 < time.now - begun <= 15 + 2 * 2


async def test_a_holder_that_renews_keeps_others_away(store: MemoryStore, time: Time) -> None:
    first, second = candidate(store, time, "a"), candidate(store, time, "b")
    await first.acquire()
    for _ in range(20):
        assert not await second._attempt(second._take)
        time.now += 2
        assert await first._attempt(first._renew)
    assert first.held


async def test_a_released_lease_is_taken_at_once(store: MemoryStore, time: Time) -> None:
    first = candidate(store, time, "a")
    await first.acquire()
    await first.release()
    assert not first.held
    begun = time.now
    await candidate(store, time, "b").acquire()
    assert time.now == begun
    assert store.holder == "b"


async def test_failures_end_leadership_at_the_deadline(store: MemoryStore, time: Time) -> None:
    lease = candidate(store, time, "a")
    await lease.acquire()
    begun = time.now
    store.broken = True
    await lease.keep()
    assert not lease.held
    assert time.now - begun == pytest.approx(10)


async def test_a_frozen_api_ends_leadership_before_anyone_may_take_over(store: MemoryStore, time: Time) -> None:
    """Every request hangs; each is given up after its limit, and none holds leadership open."""
    lease = candidate(store, time, "a")
    await lease.acquire()
    begun = time.now
    store.frozen = True
    await asyncio.wait_for(lease.keep(), 10)
    assert time.now - begun <= 10
    assert not lease.held


async def test_leadership_passes_in_the_middle_of_a_hanging_request(store: MemoryStore) -> None:
    """With the real clock: the deadline cuts the request short."""
    times = LeaseTimes(duration=0.6, deadline=0.3, pause=0.05, request=30)
    lease = Lease(store, "a", times)
    await lease.acquire()
    store.frozen = True
    await asyncio.wait_for(lease.keep(), 10)
    assert not lease.held


async def test_a_passing_failure_is_survived(store: MemoryStore, time: Time) -> None:
    lease = candidate(store, time, "a")
    await lease.acquire()
    store.broken = True
    assert not await lease._attempt(lease._renew)
    time.now += 5
    store.broken = False
    assert await lease._attempt(lease._renew)
    time.now += 9
    assert lease.held


async def test_a_renewal_whose_answer_was_lost_is_recognised(store: MemoryStore, time: Time) -> None:
    lease = candidate(store, time, "a")
    await lease.acquire()
    store.forget_answer = True
    assert not await lease._attempt(lease._renew)
    time.now += 2
    await lease._attempt(lease._renew)
    time.now += 2
    assert await lease._attempt(lease._renew)
    assert lease.held


async def test_a_stolen_lease_is_lost_at_once(store: MemoryStore, time: Time) -> None:
    first = candidate(store, time, "a")
    await first.acquire()
    thief = candidate(store, time, "b")
    await thief._observe()
    assert await thief._write(store.body, time.now, holder="b")
    begun = time.now
    await first.keep()
    assert time.now - begun <= 2
    assert not first.held
    assert store.holder == "b"


async def test_release_of_a_lost_lease_leaves_the_new_holder_alone(store: MemoryStore, time: Time) -> None:
    first = candidate(store, time, "a")
    await first.acquire()
    await candidate(store, time, "b").acquire()
    await first.release()
    assert store.holder == "b"


async def test_the_lease_of_a_former_self_is_not_waited_for(store: MemoryStore, time: Time) -> None:
    """One process that has taken its first candidate apart; to anyone else the silent holder still leads."""
    await Lease(store, "a", clock=time, sleep=time.sleep).acquire()
    before = time.now
    stranger = Lease(store, "b", clock=time, sleep=time.sleep)
    assert not await stranger._attempt(stranger._take)
    await Lease(store, "a-2", former="a", clock=time, sleep=time.sleep).acquire()
    assert (store.holder, time.now) == ("a-2", before)
