"""The status of a WorkflowRun, as a pure function of what the database says.

Invariant: the same summary gives the same status, every field is always written (null where there is nothing, so that a
merge patch removes what an earlier status said), and the whole stays within its limit: first messages of nodes are
shortened, then nodes are left out, then the output and the messages of signals. Ids of signals are never left out,
since a signal may be removed from the spec only while the status lists it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import orjson

from partita.domain.model import Definition
from partita.domain.state.rows import TERMINAL, RunStatus, Stage
from partita.engine.projection import NodeSummary, Refusal, RunSummary, SignalSummary, WaitSummary
from partita.kube.conditions import Condition, clip, manifests, milliseconds
from partita.kube.stages import complete, staged
from partita.kube.words import MESSAGE_LIMIT, error_text, message_of, node_message, waiting_for

Status = dict[str, Any]

_TYPE_LIMIT: Final = 128
_ERROR_LIMIT: Final = 2048


def run_status(
    run: RunSummary, limit: int = 16_384, unsupported: tuple[str, ...] = (), flow: Definition | None = None
) -> Status:
    """Status of an object that has a run.

    ``limit``: most bytes, as JSON. ``unsupported``: controls in the spec that have no effect. ``flow``: what the run
    executes, which gives its nodes their order and stages; without it they stand as they come.
    """
    whole = run if flow is None else replace(run, nodes=complete(run.nodes, flow))
    for shrink in _SHRINKS:
        status = _run_status(shrink(whole), unsupported, flow)
        if len(orjson.dumps(status)) <= limit:
            break
    return status


def refusal_status(refusal: Refusal) -> Status:
    """Status of an object that has no run: Pending while it waits for its definition, else Failed for good."""
    generation = refusal.object.generation
    phase = RunStatus.PENDING if refusal.waiting else RunStatus.FAILED
    ended = None if refusal.waiting else milliseconds(refusal.created_at)
    return {
        "observedGeneration": generation,
        "revision": 0,
        "phase": phase.value,
        "stage": None,
        "runId": None,
        "version": None,
        "progress": None,
        "waitingFor": _refused_waiting(refusal),
        "message": clip(refusal.message, 4096),
        "error": None if refusal.waiting else {"type": refusal.reason, "message": clip(refusal.message, _ERROR_LIMIT)},
        "startedAt": None,
        "finishedAt": ended,
        "lastSyncTime": milliseconds(refusal.now),
        "signals": None,
        "nodes": None,
        "output": None,
        "conditions": manifests(_refusal_conditions(refusal), generation),
    }


def _run_status(run: RunSummary, unsupported: tuple[str, ...], flow: Definition | None) -> Status:
    return {
        "observedGeneration": run.object.generation,
        "revision": run.revision,
        "phase": run.status.value,
        "stage": run.stage,
        "runId": str(run.run_id),
        "version": run.version,
        "progress": f"{run.done}/{run.total}",
        "waitingFor": waiting_for(run.status, run.waits) or None,
        "message": clip(_message(run, unsupported), 4096) or None,
        "error": _error(run),
        "startedAt": milliseconds(run.started_at) if run.started_at else None,
        "finishedAt": milliseconds(run.finished_at) if run.finished_at else None,
        "lastSyncTime": milliseconds(run.now),
        "signals": [_signal(signal) for signal in run.signals] or None,
        "nodes": [_node(node, run.waits, stage) for node, stage in staged(run.nodes, flow)] or None,
        "output": run.output if isinstance(run.output, dict) else None,
        "conditions": manifests(_run_conditions(run, unsupported), run.object.generation),
    }


def _message(run: RunSummary, unsupported: tuple[str, ...]) -> str:
    """The message of a status, the controls without effect last, since what went wrong matters more."""
    words = (_outcome(run), _ignored(unsupported))
    return "; ".join(word for word in words if word)


def _error(run: RunSummary) -> Status | None:
    """Why the run ended badly."""
    if run.error is None or run.status not in TERMINAL:
        return None
    return {"type": clip(run.error.type, _TYPE_LIMIT), "message": clip(run.error.message, _ERROR_LIMIT)}


def _ignored(unsupported: tuple[str, ...]) -> str:
    names = ", ".join(f"spec.{name}" for name in unsupported)
    return f"{names}: not supported by this version, has no effect" if names else ""


def _signal(signal: SignalSummary) -> Status:
    message = {"message": clip(signal.message, MESSAGE_LIMIT)} if signal.message else {}
    return {"id": signal.id, "state": signal.state, **message}


def _node(node: NodeSummary, waits: tuple[WaitSummary, ...], stage: Stage) -> Status:
    message = node_message(node, waits)
    return {
        "name": node.name,
        **({"stage": stage.value} if stage is not Stage.MAIN else {}),
        "state": node.state,
        "attempt": node.attempt,
        **({"message": message} if message else {}),
        **({"runId": str(node.child)} if node.child is not None else {}),
    }


def _run_conditions(run: RunSummary, unsupported: tuple[str, ...]) -> list[Condition]:
    ended = run.status in TERMINAL
    since = run.finished_at or run.created_at
    outcome = run.status is RunStatus.SUCCEEDED if ended else None
    reason = run.reason or run.status.value
    suspended = run.status is RunStatus.SUSPENDED
    dead = [wait for wait in run.waits if wait.dead is not None]
    return [
        _accepted(run, unsupported),
        Condition("Completed", ended, reason if ended else run.status.value, _ending(run), since),
        Condition("Succeeded", outcome, reason, _outcome(run) if ended else "the run has not ended", since),
        Condition(
            "Suspended",
            suspended,
            "Suspended" if suspended else "NotSuspended",
            "nothing new starts until spec.suspend is false" if suspended else "",
            run.suspension_at or run.created_at,
        ),
        Condition(
            "Synced",
            not dead,
            "EngineError" if dead else "Synced",
            _given_up(dead[0]) if dead else "",
            run.created_at,
        ),
    ]


def _given_up(wait: WaitSummary) -> str:
    """What the engine does not try any more, and where it is seen."""
    what = "start or end of the child" if wait.kind == "child" else "timer"
    return f"{what} of {wait.node or 'the run'} was given up: {wait.dead}; try: partita dead-letters list"


def _accepted(run: RunSummary, unsupported: tuple[str, ...]) -> Condition:
    if not unsupported:
        return Condition("Accepted", True, "Started", f"run {run.run_id}", run.created_at)
    words = f"run {run.run_id}; {_ignored(unsupported)}"
    return Condition("Accepted", True, "ControlNotSupported", words, run.created_at)


def _outcome(run: RunSummary) -> str:
    return message_of(run.status, error_text(run.error), run.reason, run.nodes)


def _ending(run: RunSummary) -> str:
    return f"{run.done} of {run.total} nodes settled"


def _refusal_conditions(refusal: Refusal) -> list[Condition]:
    since = refusal.created_at
    words = "the run has not started" if refusal.waiting else "the run was refused"
    return [
        Condition("Accepted", False, refusal.reason, refusal.message, since),
        Condition("Completed", not refusal.waiting, refusal.reason, words, since),
        Condition("Succeeded", None if refusal.waiting else False, refusal.reason, words, since),
        Condition("Suspended", False, "NotSuspended", "", since),
        Condition("Synced", True, "Synced", "", since),
    ]


def _refused_waiting(refusal: Refusal) -> str | None:
    if not refusal.waiting:
        return None
    return "its definition" if refusal.reason == "DefinitionNotFound" else "another try to start"


def _with_nodes(count: int, characters: int) -> Callable[[RunSummary], RunSummary]:
    def shrink(run: RunSummary) -> RunSummary:
        nodes = tuple(replace(node, message=clip(node.message, characters)) for node in run.nodes[:count])
        return replace(run, nodes=nodes)

    return shrink


def _without_output(run: RunSummary) -> RunSummary:
    error = None if run.error is None else replace(run.error, message=clip(run.error.message, 512))
    return replace(_with_nodes(0, 1)(run), output=None, error=error)


def _only_ids(run: RunSummary) -> RunSummary:
    signals = tuple(replace(signal, message=clip(signal.message, 64)) for signal in run.signals)
    return replace(_without_output(run), signals=signals)


_SHRINKS: Final[tuple[Callable[[RunSummary], RunSummary], ...]] = (
    lambda run: run,
    _with_nodes(20, 200),
    _with_nodes(5, 100),
    _with_nodes(0, 1),
    _without_output,
    _only_ids,
)
"""From nothing to the most, each tried until the status fits. The last always does: 64 ids of 63 and messages of 64
characters, and four conditions with at most 1 KiB of message, are about 14 KiB."""
