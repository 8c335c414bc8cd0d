"""Reports are sent until they are answered, unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from partita.domain.errors import (
    ConflictError,
    EngineError,
    InvalidError,
    OutdatedError,
    Problem,
    UnavailableError,
)
from partita.domain.payload import Payload
from partita.engine.requests import ClaimedTask, Offer, Report, ReportReply
from partita.worker.attempts import Abandoned, Succeeded
from partita.worker.reports import DEFECT_TRIES, Reporter
from tests.engine.manual_clock import ManualClock
from tests.worker.support import claimed

OFFER = Offer(worker_id="w1", queues=frozenset({"default"}))
DONE = Succeeded(Payload.of(1))


class Engine:
    """Answers with what the test gives, one after the other."""

    def __init__(self, *answers: ReportReply | Exception) -> None:
        self.answers = list(answers)
        self.reports: list[Report] = []
        self.offers: list[Offer | None] = []

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        self.reports.append(report)
        self.offers.append(offer)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def distinct(self) -> Sequence[Report]:
        return list({report.request_id: report for report in self.reports}.values())


async def test_a_report_is_sent_again_with_the_same_request_id() -> None:
    task, following, clock = claimed(), claimed(), ManualClock()
    away = UnavailableError("database: is away")
    engine = Engine(away, away, away, ReportReply("applied", following))
    reporter = Reporter(engine, "w1", clock=clock)
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(reporter.report(task, DONE, OFFER))
        while not sending.done():
            clock.move(1)
            await asyncio.sleep(0)
    assert sending.result() is following
    assert engine.offers == [OFFER] * 4
    (report,) = engine.distinct()
    assert (report.lease_id, report.attempt, report.worker_id) == (task.lease_id, task.attempt, "w1")
    assert report.output == DONE.output


async def test_giving_up_ends_the_resending() -> None:
    engine = Engine(UnavailableError("database: is away"))
    reporter = Reporter(engine, "w1")
    reporter.give_up()
    assert await reporter.report(claimed(), DONE, None) is None
    assert len(engine.reports) == 1


async def test_a_result_that_the_engine_refuses_fails_the_attempt() -> None:
    engine = Engine(InvalidError("output", (Problem("", "is poison"),)), ReportReply("applied"))
    assert await Reporter(engine, "w1").report(claimed(), DONE, OFFER) is None
    first, second = engine.reports
    assert first.error is None
    assert second.error is not None
    assert (second.error.type, second.error.message) == ("report_refused", "output: is poison")


async def answered(reporter: Reporter, clock: ManualClock, task: ClaimedTask) -> ClaimedTask | None:
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(reporter.report(task, DONE, OFFER))
        while not sending.done():
            clock.move(10)
            await asyncio.sleep(0)
    return sending.result()


async def test_a_defect_of_the_engine_spends_no_attempt() -> None:
    task, following, clock = claimed(), claimed(), ManualClock()
    defects = [EngineError("defect"), ConflictError("defect"), EngineError("defect")]
    engine = Engine(*defects, ReportReply("applied", following))
    assert await answered(Reporter(engine, "w1", clock=clock), clock, task) is following
    (report,) = engine.distinct()
    assert (len(engine.reports), report.error) == (4, None)


async def test_a_report_that_only_meets_defects_is_dropped_at_last() -> None:
    clock = ManualClock()
    engine = Engine(*[EngineError("defect")] * (DEFECT_TRIES + 1))
    assert await answered(Reporter(engine, "w1", clock=clock), clock, claimed()) is None
    assert len(engine.reports) == DEFECT_TRIES
    assert len(engine.distinct()) == 1


async def test_a_report_that_meets_defects_ends_with_its_lease() -> None:
    task, clock = claimed(), ManualClock()
    engine = Engine(*[EngineError("defect")] * 9)
    reporter = Reporter(engine, "w1", clock=clock)
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(reporter.report(task, DONE, OFFER))
        while len(engine.reports) < 3:
            clock.move(10)
            await asyncio.sleep(0)
        reporter.lease_gone(task.lease_id)
        while not sending.done():
            clock.move(10)
            await asyncio.sleep(0)
    assert len(engine.distinct()) == 1
    assert len(engine.reports) <= 4


async def test_a_process_that_is_too_old_does_not_send_again() -> None:
    engine = Engine(OutdatedError("engine: protocol 1 is too old"))
    assert await Reporter(engine, "w1").report(claimed(), DONE, OFFER) is None
    assert len(engine.reports) == 1


async def test_nothing_is_reported_of_an_abandoned_attempt() -> None:
    engine = Engine()
    assert await Reporter(engine, "w1").report(claimed(), Abandoned("lost"), OFFER) is None
    assert engine.reports == []
