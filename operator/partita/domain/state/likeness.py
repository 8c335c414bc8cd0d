"""Whether all runs of a definition begin in the same way, whatever their input.

Invariant: pure; true only when the decision of an ordinary start evaluates nothing: then two starts of one moment that
have the same priority and timeout differ in their ids, names and inputs only. Trade-off: a definition whose first node
reads its input is left to be decided run by run, which is always right.
"""

from __future__ import annotations

from partita.domain.model import Definition
from partita.domain.state.events import RunStarted
from partita.domain.state.plan import plan_of


def begins_alike(definition: Definition) -> bool:
    """Whether the first nodes are plain tasks of constant input and timeout, which start unconditionally."""
    return all(plan.constant for plan in plan_of(definition).roots)


def is_ordinary(event: RunStarted) -> bool:
    """Whether a start comes with nothing but its input: no object, no controls, no time to begin at, no parent."""
    return not (
        event.cr_uid
        or event.subflow
        or event.depth
        or event.controls is not None
        or event.start_at is not None
        or event.parent is not None
        or event.mailbox_id is not None
    )
