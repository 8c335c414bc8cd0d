"""What a run waits for, how a loop gets on and what went wrong, in the words of statuses and of the command line.

Invariant: pure, and the same facts give the same words wherever they are shown. Every text is of bounded length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from partita.domain.state.rows import TERMINAL, ErrorInfo, Loop, RunStatus, TimerKind, is_undo
from partita.engine.projection import NodeSummary, WaitSummary
from partita.kube.conditions import clip, seconds

_WAITING_LIMIT: Final = 256
MESSAGE_LIMIT: Final = 1024
"""Characters of the message of a node or signal."""
CHILD: Final = "child"
"""Kind of a wait for a child run."""
_TIMERS: Final[dict[str, str]] = {
    TimerKind.WAIT: "timer {}",
    TimerKind.BACKOFF: "retry of {}",
    TimerKind.DELAY: "next iteration of {}",
    TimerKind.DRAIN: "attempts in flight",
    TimerKind.START: "start",
}
"""Timers that hold a run up, by kind; ``{}`` is the node."""


def waiting_for(status: RunStatus, waits: Iterable[WaitSummary]) -> str:
    """What an unfinished run waits for, in words: the first two things and how many more."""
    if status in TERMINAL:
        return ""
    if status is RunStatus.SUSPENDED:
        return "resume"
    known = [*waits]
    told = {wait.child for wait in known if wait.kind == "signal"}
    shown = [wait for wait in known if wait.kind != CHILD or wait.child is None or wait.child not in told]
    words = [text for wait in sorted(shown, key=_order) if (text := _wait(wait))]
    more = f" and {len(words) - 2} more" if len(words) > 2 else ""
    return clip(", ".join(words[:2]) + more, _WAITING_LIMIT)


def _order(wait: WaitSummary) -> tuple[int, bool, str, str]:
    """Signals first, since people can send them; then children; then the earliest timer."""
    first = {"signal": 0, CHILD: 1}.get(wait.kind, 2)
    return first, wait.until is None, seconds(wait.until) if wait.until else "", wait.node


def _wait(wait: WaitSummary) -> str:
    """One wait in words; empty for timers that only bound something else."""
    if wait.kind == "signal":
        return f"event {wait.name}{_who(wait)}"
    if wait.kind == CHILD:
        return f"child run{'' if wait.name else 's'} of {wait.node}"
    until = f" until {seconds(wait.until)}" if wait.until else ""
    words = _TIMERS.get(wait.kind, "")
    return f"{words.format(wait.node)}{until}" if words else ""


def _who(wait: WaitSummary) -> str:
    """The node that waits for an event, where its name does not say so."""
    if wait.child is not None:
        return f" ({wait.node}, in a child run)"
    return "" if wait.name == wait.node else f" ({wait.node})"


def loop_progress(loop: Loop) -> str:
    """How a loop gets on, such as ``412/1000 · 3 failed · 10 running``; a repeat has iterations and no total."""
    settled = loop.completed + loop.failed
    counts = f"{settled}/{loop.total}" if loop.total else f"{settled} iteration{'' if settled == 1 else 's'}"
    more = [f"{loop.failed} failed"] if loop.failed else []
    more += [f"{loop.running} running"] if loop.running else []
    return " · ".join([counts, *more])


def error_text(error: ErrorInfo | None) -> str:
    """An error in one line; empty without one."""
    return f"{error.type}: {error.message}" if error is not None else ""


def message_of(status: RunStatus, error: str, reason: str, nodes: Iterable[NodeSummary]) -> str:
    """The latest that people should know: why it ended badly, or which nodes have failed so far, and what undo left."""
    known = [*nodes]
    failed = [f"{node.name}: {node.message}" for node in known if node.state == "Failed" and not is_undo(node.name)]
    if status in TERMINAL:
        failed = [error or ("" if status is RunStatus.SUCCEEDED else reason)]
    undo = undo_failed((node.name, node.message) for node in known if node.state == "Failed" and is_undo(node.name))
    return "; ".join(word for word in (*failed[:3], undo) if word)


def undo_failed(nodes: Iterable[tuple[str, str]]) -> str:
    """What could not be reversed, by name and error, such as ``undo failed: pay~undo (timeout: …)``; else empty."""
    told = [f"{name} ({message})" if message else name for name, message in nodes]
    more = f" and {len(told) - 3} more" if len(told) > 3 else ""
    return f"undo failed: {', '.join(told[:3])}{more}" if told else ""


def node_message(node: NodeSummary, waits: Iterable[WaitSummary]) -> str:
    """What people should know of a node: its last error unless it completed, and what it waits for."""
    words = [loop_progress(node.loop)] if node.loop is not None else []
    words += [node.message] if node.message and node.state != "Completed" else []
    if node.state == "Waiting" and node.loop is None:
        own = (wait for wait in waits if wait.node == node.name and (wait.kind == CHILD or wait.child is None))
        words += map(_wait, own)
    return clip("; ".join(word for word in words if word), MESSAGE_LIMIT)


def not_accepted(place: str, problem: object) -> str:
    """Why no run of a definition can start although its object exists; ``place`` is namespace/name."""
    return f"WorkflowDefinition {place}: was not accepted: {problem}"


def describe(metadata: Mapping[str, str]) -> str:
    """The command that shows all problems of a definition."""
    return f"kubectl describe wfd {metadata['name']} -n {metadata['namespace']}"
