"""Results of attempts that were cancelled while their run goes on.

Invariant: a late result is one line of history and nothing else; the store makes the event once for each attempt. The
worker hears ``stale``, as for any attempt that is not its own any more.
"""

from __future__ import annotations

from typing import Final

from partita.domain.payload import Payload
from partita.domain.state.draft import Draft
from partita.domain.state.events import LateResult, Reply
from partita.domain.state.rows import NodeKey, NodeState

LATE_RESULT: Final = "LateResult"
_SMALL: Final = 2_048
"""Bytes of an output up to which the line of history shows it."""


def late_result(draft: Draft, event: LateResult) -> None:
    """A worker reports an attempt whose node was cancelled. Raises Lacking."""
    draft.reply(Reply("stale"))
    if draft.terminal or event.node not in draft.plan.nodes:
        return
    row = draft.row(NodeKey(event.node, event.index))
    if row is None or row.state is not NodeState.CANCELLED or row.attempt != event.attempt:
        return
    draft.begin()
    draft.note(
        LATE_RESULT, key=row.key, attempt=event.attempt, who=event.worker, error=event.error, details=_details(event)
    )


def _details(event: LateResult) -> dict[str, object]:
    if event.error is not None:
        return {"outcome": NodeState.FAILED.value}
    details: dict[str, object] = {"outcome": NodeState.COMPLETED.value}
    output = event.output or Payload("null", None)
    if output.size() <= _SMALL:
        details["output"] = output.value
    return details
