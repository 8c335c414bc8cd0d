"""Things that happen to a run, as steps of the table."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.state.effects import Effects
from partita.domain.state.events import (
    CancelRequested,
    ChildFinished,
    ControlsApplied,
    DeadlineReached,
    LateResult,
    LoopContinued,
    SignalGiven,
    SuspendRequested,
    TaskCompleted,
    WaitClosed,
    WaitExpired,
    WaitOpened,
    WaitTimedOut,
)
from partita.domain.state.rows import FROZEN, ErrorInfo, NodeKey, Parent, RunStatus, SignalRow
from tests.property.world import EPOCH, World


def start(world: World) -> Any:
    """Start the run."""
    return world.start({"go": True})


def start_later(world: World) -> Any:
    """Start the run in an hour."""
    return world.start(start_at=EPOCH + timedelta(hours=1))


def start_suspended(world: World) -> Any:
    """Start the run from an object that is suspended already."""
    return world.start(controls=ControlsApplied(cr_generation=1, suspend=True))


def start_cancelled(world: World) -> Any:
    """Start the run from an object that is cancelled already."""
    return world.start(controls=ControlsApplied(cr_generation=1, cancel=CancelRequested()))


def claim(world: World) -> Any:
    """A worker takes ``a``."""
    return world.claim("a")


def claim_p(world: World) -> Any:
    """A worker takes ``p``."""
    return world.claim("p")


def complete(world: World) -> Any:
    """``a`` completes."""
    return world.complete("a", 1)


def complete_p(world: World) -> Any:
    """``p`` completes."""
    return world.complete("p", 1)


def complete_q(world: World) -> Any:
    """``q`` completes."""
    return world.complete("q", 1)


def complete_too_large(world: World) -> Any:
    """``a`` completes with more than is kept."""
    return world.complete("a", "x" * world.limits.output_bytes)


def late_report(world: World) -> Any:
    """A report of an attempt that is not the current one."""
    lease_kept = replace(world.peeked("a"), attempt=7)
    return world.send(lease_kept)


def again(world: World) -> Any:
    """A report of an attempt that has ended."""
    return world.send(world.peeked("a"))


def fail(world: World) -> Any:
    """``a`` fails."""
    return world.fail("a")


def fail_q(world: World) -> Any:
    """``q`` fails."""
    return world.fail("q")


def fail_z(world: World) -> Any:
    """``z`` fails."""
    return world.fail("z")


def fail_retryable(world: World) -> Any:
    """``a`` fails and its worker asks for another try."""
    return world.fail("a", retryable=True, retry_after_ms=5_000)


def fail_unknown(world: World) -> Any:
    """``a`` was taken by a worker that does not know its type."""
    return world.fail("a", "unknown_task_type")


def lose(world: World) -> Any:
    """The worker of ``a`` vanishes."""
    return world.lose("a")


def hand_back(world: World) -> Any:
    """The worker of ``a`` hands it back."""
    return world.lose("a", handed_back=True)


def time_out(world: World) -> Any:
    """The attempt of ``a`` takes too long."""
    return world.time_out("a")


def never_taken(world: World) -> Any:
    """Nobody takes ``a`` in time."""
    return world.never_taken("a")


def signal(world: World) -> Any:
    """A signal named ``a``."""
    return world.signal("a", {"ok": True})


def signal_s1(world: World) -> Any:
    """A signal with a fixed id."""
    return world.signal("a", 1, id="s1")


CHILD = UUID("0190a0b0-0000-7000-8000-000000000002")
OWNER = UUID("0190a0b0-0000-7000-8000-000000000003")


def start_subflow(world: World) -> Any:
    """Start the run as a subflow, whose signals come to another run's mailbox."""
    return world.start(subflow="s", mailbox_id=OWNER, parent=Parent(OWNER, "n", 0, 1), depth=1)


def _child_finished(world: World, status: RunStatus, **more: Any) -> Any:
    row = world.row("a")
    child = row.detail.child if row.detail is not None else None
    event = ChildFinished(node="a", index=0, attempt=row.attempt, child=child or CHILD, status=status, **more)
    return world.send(event)


def child_succeeds(world: World) -> Any:
    """The child of ``a`` succeeds."""
    return _child_finished(world, RunStatus.SUCCEEDED, output=Payload.of(1))


def child_fails(world: World) -> Any:
    """The child of ``a`` fails."""
    return _child_finished(world, RunStatus.FAILED, error=ErrorInfo("boom", "boom happened"))


def child_is_cancelled(world: World) -> Any:
    """The child of ``a`` is cancelled."""
    return _child_finished(world, RunStatus.CANCELLED, error=ErrorInfo("cancelled", "no longer wanted"))


def signal_given(world: World) -> Any:
    """The owner of the mailbox gives ``a`` a signal."""
    signal = SignalRow("s1", "a", 3, Payload.of(1), "", world.now)
    return world.send(SignalGiven(node="a", index=0, signal=signal, alternative=0, place=2, names=("a",)))


def wait_timed_out(world: World) -> Any:
    """The owner of the mailbox says that no signal came in time."""
    return world.send(WaitTimedOut(node="a", index=0))


def wait_opened(world: World) -> Any:
    """A child waits for ``a``."""
    return world.send(WaitOpened(child=CHILD, subflow="s", node="w", index=0, names=("a",)))


def wait_closed(world: World) -> Any:
    """A child does not wait any more."""
    return world.send(WaitClosed(child=CHILD, node="w", index=0))


def wait_expired(world: World) -> Any:
    """A child has waited long enough."""
    return world.send(WaitExpired(child=CHILD, node="w", index=0))


def suspend(world: World) -> Any:
    """Suspend."""
    return world.suspend()


def resume(world: World) -> Any:
    """Resume."""
    return world.resume()


def cancel(world: World) -> Any:
    """Cancel."""
    return world.cancel()


def cancel_now(world: World) -> Any:
    """Cancel at once."""
    return world.send(CancelRequested(mode="Now"))


def cancel_a(world: World) -> Any:
    """Cancel ``a`` by its name."""
    return world.send(CancelRequested(nodes=("a",)))


def late_result(world: World) -> Any:
    """A worker reports the attempt of ``a`` after it was cancelled."""
    return world.send(LateResult(node="a", index=0, attempt=1, worker="worker-1", output=Payload.of(1)))


def complete_undo(world: World) -> Any:
    """The undo of ``a`` completes."""
    return world.complete("a~undo")


def fail_undo(world: World) -> Any:
    """The undo of ``a`` fails for good."""
    return world.fail("a~undo", "fatal")


def complete_audit(world: World) -> Any:
    """The node of finally completes."""
    return world.complete("audit")


def fail_audit(world: World) -> Any:
    """The node of finally fails."""
    return world.fail("audit")


def deadline_due(world: World) -> Any:
    """The deadline of finally passes."""
    world.pass_time(300)
    return deadline(world)


def deadline(world: World) -> Any:
    """The run's deadline passes."""
    return world.send(DeadlineReached())


def due(world: World) -> Any:
    """The first timer falls due."""
    world.pass_time(7_200)
    return world.send(world.fire(world.due()[0]))


def due_after_suspend(world: World) -> Any:
    """A timer falls due in the transaction in which the run is suspended, after it."""
    world.pass_time(7_200)
    event = world.fire(world.due()[0])
    world.store.apply(world.decide(SuspendRequested()))
    return world.send(event)


def control_suspend(world: World) -> Any:
    """The object says suspend."""
    return world.controls(2, suspend=True)


def control_nothing(world: World) -> Any:
    """The object says nothing."""
    return world.controls(3)


def control_again(world: World) -> Any:
    """The object of a generation that was applied before says suspend."""
    return world.controls(3, suspend=True)


def complete_second(world: World) -> Any:
    """The second item (or iteration) of ``a`` completes."""
    return world.send(_of_second(world))


def _of_second(world: World) -> TaskCompleted:
    attempt = world.store.ready.pop(NodeKey("a", 1)).attempt
    return TaskCompleted(
        node="a", index=1, attempt=attempt, output=Payload.of(2), worker="worker-1", started_at=world.now
    )


def go_on(world: World) -> Any:
    """The run goes on with the loop ``a``."""
    world.store.left.clear()
    return world.send(LoopContinued(node="a"))


def effects_of(effects: Effects) -> set[str]:
    """What effects write besides rows, in the words of the table."""
    found = {f"history {line.event}" for line in effects.history}
    found |= {
        f"timer {timer.kind.value}{' frozen' if timer.fire_at == FROZEN else ''}" for timer in effects.timers.values()
    }
    flags = {
        "ready row": effects.enqueue,
        "ready rows withdrawn": effects.withdraw,
        "work dropped": effects.drop_work,
        "wait": effects.waits,
        "waits dropped": effects.drop_waits,
        "child's wait dropped": effects.drop_child_waits,
        "timers dropped": effects.drop_timers,
        "cleared": effects.clear,
        "output": effects.output is not None,
    }
    found |= {word for word, present in flags.items() if present}
    for signal_ in effects.record_signals:
        kept = "refused" if signal_.refused else "taken" if signal_.consumed_by else "buffered"
        found.add(f"signal {kept}")
    found |= {"signal refused" if taken.refused else "signal taken" for taken in effects.consumed}
    found |= {f"message {type(message.event).__name__}" for message in effects.messages}
    reply = effects.reply
    if reply.outcome != "applied":
        found.add(f"reply {reply.outcome} {reply.reason}".strip())
    return found
