"""What an active row holds, and how it is given back: work, waits, timers.

Invariant: a row that is cancelled while its run goes on leaves nothing behind that could still fire, be claimed or be
waited for; every way to cancel a row goes through ``release``.
"""

from __future__ import annotations

from typing import Final

from partita.domain.state.draft import Draft
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import NodeState, TaskRow, TimerKind

_TIMERS: Final = (TimerKind.WAIT, TimerKind.EVENT_TIMEOUT, TimerKind.BACKOFF, TimerKind.DELAY)


def release(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """Give back what the row (an image) holds; the caller settles it. Raises Lacking."""
    key, effects = row.key, draft.effects
    if row.state is NodeState.QUEUED:
        effects.enqueue.pop(key, None)
        effects.drop_work.add(key)
    elif row.state is NodeState.WAITING:
        if plan.node.event is not None:
            draft.drop_waits(key)
        draft.drop_timers(row, _TIMERS)
