"""Loops: a group row at which the edges end, and a row for each item or iteration.

Invariant: a group row stays Waiting until no part of it is Queued or Waiting; parts have no edges, and what becomes of
one is told to its group once.
"""

from __future__ import annotations

from partita.domain.state.draft import Draft
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import TaskRow


def part_settled(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """An item, an iteration or an undo has ended. Raises Lacking."""
    del draft, plan, row
