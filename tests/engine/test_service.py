"""Services that work in rounds, and the supervisor that keeps them running."""

from __future__ import annotations

import asyncio
import logging

import pytest

from partita.domain.errors import ForbiddenError, UnavailableError
from partita.engine.service import TickingService
from partita.engine.supervisor import Backoff, Jobs, ServiceState, Supervisor
from tests.engine.manual_clock import ManualClock
from tests.waiting import until


class Counter(TickingService):
    """Counts its rounds, and fails when it is told to."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        super().__init__("counter", clock=clock)
        self.rounds = 0
        self.failures: list[Exception] = []

    async def tick(self) -> float:
        if self.failures:
            raise self.failures.pop(0)
        self.rounds += 1
        return 60.0


async def test_a_round_can_be_waited_for() -> None:
    supervisor, service = Supervisor(), Counter()
    supervisor.start(service)
    await service.ticked()
    before = service.rounds
    await service.ticked()
    assert service.rounds == before + 1
    await supervisor.stop()
    assert supervisor.report() == ()


async def test_time_begins_the_next_round() -> None:
    clock = ManualClock()
    supervisor, service = Supervisor(clock=clock), Counter(clock)
    supervisor.start(service)
    await service.ticked()
    rounds = service.rounds
    while service.rounds == rounds:
        clock.move(60)
        await asyncio.sleep(0)
    assert service.health.last_tick == clock.now
    await supervisor.stop()


async def test_a_failing_service_is_restarted_with_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    supervisor, service = Supervisor(clock=clock, backoff=Backoff(1, 8)), Counter(clock)
    service.failures = [UnavailableError("database: is away"), ValueError("bug"), ValueError("bug"), ValueError("bug")]
    with caplog.at_level(logging.WARNING):
        supervisor.start(service)
        while service.rounds == 0:
            clock.move(0.5)
            await asyncio.sleep(0)
    assert [pause for pause in clock.pauses if pause < 60] == [1, 2, 4, 8]
    (report,) = supervisor.report()
    assert (report.state, report.restarts, report.last_error) == (ServiceState.RUNNING, 4, "bug")
    traces = [record for record in caplog.records if record.exc_info]
    assert len(traces) == 3, "a lost database is one line, a bug is a traceback"
    await supervisor.stop()


async def test_what_the_outside_refuses_is_a_line_once_and_again_when_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    supervisor, service = Supervisor(clock=clock, backoff=Backoff(1, 8)), Counter(clock)
    away, refused = UnavailableError("database: is away"), ForbiddenError("kubernetes: GET x: Unauthorized")
    service.failures = [away, away, refused, refused]
    with caplog.at_level(logging.WARNING):
        supervisor.start(service)
        while service.rounds == 0:
            clock.move(0.5)
            await asyncio.sleep(0)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"service counter: {error}; it is tried again" for error in (away, refused)]
    assert not [record for record in caplog.records if record.exc_info]
    await supervisor.stop()


async def test_a_round_that_does_not_end_is_cancelled_after_the_grace() -> None:
    cancelled = asyncio.Event()

    class Stuck(Counter):
        async def tick(self) -> float:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return 0

    supervisor = Supervisor()
    supervisor.start(Stuck())
    await asyncio.sleep(0)
    await supervisor.stop(grace=0.01)
    assert cancelled.is_set()


async def test_all_rounds_that_do_not_end_have_the_same_grace() -> None:
    asked: list[str] = []

    class Stuck(Counter):
        def __init__(self, name: str) -> None:
            super().__init__()
            self._name = name

        async def tick(self) -> float:
            await asyncio.Event().wait()
            return 0

        def stop(self) -> None:
            super().stop()
            asked.append(self.name)

    supervisor = Supervisor()
    supervisor.start(*map(Stuck, "123"))
    await asyncio.sleep(0)
    ending = asyncio.create_task(supervisor.stop(grace=60))
    await asyncio.sleep(0)
    assert asked == ["3", "2", "1"], "the first is not asked only after the last has had its time"
    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)


async def test_the_age_of_a_round_is_known_while_it_lasts() -> None:
    clock, begun, go = ManualClock(), asyncio.Event(), asyncio.Event()

    class Slow(Counter):
        async def tick(self) -> float:
            begun.set()
            await go.wait()
            if self.failures:
                raise self.failures.pop()
            return 60.0

    supervisor, service = Supervisor(clock=clock, backoff=Backoff(1, 8)), Slow(clock)
    service.failures = [ValueError("bug")]
    supervisor.start(service)
    await begun.wait()
    clock.move(12)
    assert [each.round_age for each in supervisor.report()] == [12]
    go.set()

    async def failed() -> bool:
        return supervisor.report()[0].state is ServiceState.BACKING_OFF

    async def done() -> bool:
        return service.health.ticks > 0

    await until(failed, what="the round to fail")
    assert supervisor.report()[0].round_age == 0, "a round that failed is over"
    clock.move(1)
    await until(done, what="the next round to end")
    clock.move(5)
    assert supervisor.report()[0].round_age == 0, "a pause is no round"
    await supervisor.stop()


async def test_services_end_in_reverse_order_and_one_can_end_alone() -> None:
    ended: list[str] = []

    class Named(Counter):
        def __init__(self, name: str) -> None:
            super().__init__()
            self._name = name

        async def run(self) -> None:
            await super().run()
            ended.append(self.name)

    supervisor, first, second, third = Supervisor(), Named("1"), Named("2"), Named("3")
    supervisor.start(first, second, third)
    await asyncio.sleep(0)
    await supervisor.stop_one(second)
    await supervisor.stop()
    assert ended == ["2", "3", "1"]


async def test_jobs_log_their_errors_and_say_when_they_end(caplog: pytest.LogCaptureFixture) -> None:
    ends: list[int] = []
    jobs = Jobs("attempt", lambda: ends.append(len(jobs)))

    async def fail() -> None:
        raise ValueError("bug")

    jobs.spawn(fail(), "x")
    assert await jobs.join(5)
    assert ends == [0]
    assert "attempt:x failed" in caplog.text
    jobs.spawn(asyncio.sleep(60), "y")
    assert not await jobs.join(0.01)
    await jobs.cancel()
    assert len(jobs) == 0
