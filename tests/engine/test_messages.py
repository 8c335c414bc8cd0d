"""Messages between runs: their form, their order, and what becomes of those that cannot be applied."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any, TypeAlias

import asyncpg
import orjson
import pytest

from partita.domain.payload import NULL, Payload
from partita.domain.state.effects import ChildStart, Message
from partita.domain.state.events import (
    CancelRequested,
    ChildFinished,
    Event,
    LoopContinued,
    MailboxContinued,
    ParkedReleased,
    ResumeRequested,
    SignalGiven,
    SignalReceived,
    SuspendRequested,
    UndoContinued,
    WaitClosed,
    WaitExpired,
    WaitOpened,
    WaitTimedOut,
)
from partita.domain.state.rows import ErrorInfo, Parent, RunStatus, SignalRow
from partita.engine import Engine
from partita.engine.courier import Courier
from partita.engine.inbox import KNOWN
from partita.engine.messages import KINDS, Delivery, delivery_of, row_of
from partita.engine.turns import EarlierFirstError
from partita.minting import new_id
from tests.engine.support import APPROVAL, CHAIN, NAMESPACE, count, deliver, send, start, status
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"
RUN, CHILD = new_id(), new_id()
SIGNAL = SignalRow("s1", "approval", 4, Payload.of({"ok": [1, None]}), "ann", datetime(2026, 11, 29, 1, 2, 3, 4, UTC))
PARENT = Parent(RUN, "each", 7, 2)
ERROR = ErrorInfo("http_404", 'not "found"', Payload.of({"url": "/x"}))
SAMPLES: list[Event | ChildStart] = [
    ChildStart(
        definition="ship", version=3, subflow="pack", input=Payload.of({"n": 1}), parent=PARENT, mailbox_id=RUN,
        depth=2, timeout_ms=5_000, priority=-1, started_by="run x",
    ),
    ChildStart(definition="ship", version=3, input=NULL, parent=None, depth=1),
    ChildFinished(node="n", index=-1, attempt=1, child=CHILD, status=RunStatus.SUCCEEDED, output=NULL),
    ChildFinished(node="n", index=2, attempt=1, child=CHILD, status=RunStatus.FAILED, error=ERROR),
    ChildFinished(node="n", index=2, attempt=1, child=CHILD, status=RunStatus.CANCELLED, error=ErrorInfo("c", "")),
    CancelRequested(mode="Now", nodes=("a", "b"), reason="why", by="ann"),
    SuspendRequested(by="ann"),
    ResumeRequested(by="ann"),
    LoopContinued(node="each"),
    ParkedReleased(nodes=("b", "a")),
    UndoContinued(node="x~undo", index=3),
    MailboxContinued(),
    WaitOpened(child=CHILD, subflow="pack", node="n", index=0, names=("a", 'b"'), place=9, ignore_earlier=True),
    WaitClosed(child=CHILD, node="n", index=3),
    WaitExpired(child=CHILD, node="n", index=3),
    SignalGiven(node="n", index=3, signal=SIGNAL, alternative=1, place=9, names=("x", "approval")),
    WaitTimedOut(node="n", index=3),
]  # fmt: skip  # one sample a line


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_what_is_read_is_what_was_written(event: Event | ChildStart) -> None:
    run_id, kind, body = row_of(Message(RUN, event), "shop")
    assert delivery_of(8, run_id, kind, orjson.loads(body)) == Delivery(8, RUN, "shop", event)


def test_every_kind_has_a_sample_and_others_are_refused() -> None:
    assert {type(event).__name__ for event in SAMPLES} == set(KINDS)
    with pytest.raises(TypeError, match="SignalReceived cannot be sent"):
        row_of(Message(RUN, SignalReceived(id="1", name="x", payload=NULL)), "shop")


async def test_a_batch_applies_messages_in_the_order_of_their_numbers(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, CHAIN)
    first, second = await send(other, run_id, SuspendRequested(by="a"), ResumeRequested(by="b"))
    await deliver(engine, other, second, first)
    assert await status(other, run_id) == "Running"
    assert await count(other, "run_inbox", run_id) == 0


async def test_a_message_waits_for_the_one_before_it(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, CHAIN)
    first, second = await send(other, run_id, SuspendRequested(), ResumeRequested())
    (answer,) = await deliver(engine, other, second)
    assert isinstance(answer, EarlierFirstError)
    assert await other.fetchval("SELECT failures FROM partita.run_inbox WHERE id = $1", second) == 0
    await deliver(engine, other, first)
    await deliver(engine, other, second)
    assert (await status(other, run_id), await count(other, "run_inbox", run_id)) == ("Running", 0)


async def test_signals_of_callers_wait_for_no_message(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, APPROVAL)
    await send(other, run_id, SuspendRequested())
    async with other.transaction():
        await engine.signal_in(other, run_id, SignalReceived(id="s", name="approval", payload=NULL))
    number = await other.fetchval("SELECT id FROM partita.run_inbox WHERE kind = 'signal'")
    (answer,) = await deliver(engine, other, number)
    assert not isinstance(answer, Exception)


async def test_a_dead_letter_holds_nobody_up(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, CHAIN)
    first, second = await send(other, run_id, SuspendRequested(), CancelRequested())
    await other.execute("UPDATE partita.run_inbox SET dead_at = now() WHERE id = $1", first)
    await deliver(engine, other, second)
    assert await status(other, run_id) == "Cancelled"


async def test_a_message_to_an_ended_run_is_dropped(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, CHAIN)
    await engine.apply(run_id, CancelRequested(mode="Now"))
    numbers = await send(other, run_id, *SAMPLES[2:7], *SAMPLES[9:])
    answers = await deliver(engine, other, *numbers)
    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    assert await count(other, "run_inbox", run_id) == 0


async def test_a_message_to_a_run_that_will_never_be_is_dropped(engine: Engine, other: Connection) -> None:
    run_id = new_id()
    await deliver(engine, other, *await send(other, run_id, CancelRequested()))
    assert await count(other, "run_inbox", run_id) == 0


async def test_a_message_to_a_run_that_is_about_to_start_waits_for_it(engine: Engine, other: Connection) -> None:
    version = (await engine.deploy(NAMESPACE, "order", CHAIN)).version
    run_id = new_id()
    born = ChildStart(definition="order", version=version, input=Payload.of({}), parent=None, depth=1)
    begun, told = await send(other, run_id, born, CancelRequested())
    (answer,) = await deliver(engine, other, told)
    assert isinstance(answer, Exception)
    assert await count(other, "run_inbox", run_id) == 2
    await deliver(engine, other, begun)
    await deliver(engine, other, told)
    assert (await status(other, run_id), await count(other, "run_inbox", run_id)) == ("Cancelled", 0)


async def test_a_process_that_is_too_old_counts_no_failure(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, CHAIN)
    await other.execute("UPDATE partita.engine_state SET oldest_protocol = 99")
    await deliver(engine, other, *await send(other, run_id, SuspendRequested()))
    assert await other.fetchval("SELECT failures FROM partita.run_inbox") == 0


async def test_the_inbox_takes_every_kind_and_no_other(other: Connection) -> None:
    check = await other.fetchval(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'run_inbox_kind_check'"
    )
    assert sorted(re.findall(r"'(\w+)'", check)) == sorted(KNOWN)


async def test_a_kind_of_a_newer_version_is_left_alone(engine: Engine, other: Connection) -> None:
    await other.execute("ALTER TABLE partita.run_inbox DROP CONSTRAINT run_inbox_kind_check")
    await other.execute("INSERT INTO partita.run_inbox (run_id, kind, body) VALUES ($1, 'Future', '{}')", RUN)
    due = await engine.database.fetch("due_inbox", KNOWN, 10, 0)
    assert due == []


class Recorder:
    """A messenger that tells in which order it was asked, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.going = 0
        self.most = 0
        self.gate = asyncio.Event()

    async def message(self, delivery: Delivery) -> None:
        self.asked.append(delivery.inbox_id)
        self.going += 1
        self.most = max(self.most, self.going)
        await self.gate.wait()
        self.going -= 1


async def test_the_courier_starts_a_run_before_it_tells_it_anything() -> None:
    messenger = Recorder()
    courier = Courier(messenger)
    courier.sent([Delivery(1, RUN, "shop", SAMPLES[1])])
    courier.sent([Delivery(2, RUN, "shop", CancelRequested()), Delivery(3, RUN, "shop", LoopContinued(node="x"))])

    async def asked() -> bool:
        return bool(messenger.asked)

    await until(asked, what="the start is delivered")
    assert messenger.asked == [1]
    messenger.gate.set()

    async def idle() -> bool:
        return courier.pending == 0

    await until(idle, what="everything is delivered")
    assert messenger.asked == [1, 2, 3]
    await courier.close()


async def test_the_courier_serves_a_bounded_number_of_runs_at_a_time() -> None:
    messenger = Recorder()
    courier = Courier(messenger, targets=3)
    courier.sent([Delivery(number, new_id(), "shop", CancelRequested()) for number in range(1, 11)])

    async def full() -> bool:
        return messenger.going == 3

    await until(full, what="three runs are served")
    messenger.gate.set()

    async def idle() -> bool:
        return courier.pending == 0

    await until(idle, what="everything is delivered")
    assert (messenger.most, sorted(messenger.asked)) == (3, list(range(1, 11)))
    await courier.close()


async def test_the_duty_leaves_what_is_behind_a_message_that_is_not_due(engine: Engine, other: Connection) -> None:
    run_id, free = new_id(), new_id()
    first, second = await send(other, run_id, SuspendRequested(), ResumeRequested())
    (third,) = await send(other, free, ResumeRequested())
    due = [row["id"] for row in await engine.database.fetch("due_inbox", KNOWN, 10, 0)]
    assert due == [first, second, third]
    await other.execute("UPDATE partita.run_inbox SET due_at = now() + interval '1 hour' WHERE id = $1", first)
    assert [row["id"] for row in await engine.database.fetch("due_inbox", KNOWN, 10, 0)] == [third]
