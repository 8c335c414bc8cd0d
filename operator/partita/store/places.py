"""Records that know where they stand on their page, and which of their changes are those of an ordinary step.

Purpose: a row that this transaction has read under the lock of its run is updated at its place (``ctid``) without a
second look into the index, and only the columns that an ordinary step changes are sent. Invariant: a place is used in
the transaction that read it, or by a statement that proves that the row still stands there (``direct``); after-images
have none. Trade-off: what is not an ordinary step, or was not read, is looked up by its key and written whole, by
another statement.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final, TypeGuard

from partita.domain.state.rows import RunRow, TaskRow


class PlacedRun(RunRow):
    """A run's row as it was read, or as it was written there."""

    __slots__ = ("place",)
    place: bytes
    """As the server sent it: block and offset."""


class PlacedTask(TaskRow):
    """A task's row as it was read, or as it was written there."""

    __slots__ = ("place",)
    place: bytes


def placed_run(row: RunRow, place: bytes) -> PlacedRun:
    """A run's row that was written there."""
    made = PlacedRun.__new__(PlacedRun)
    for name in RunRow.__slots__:
        setattr(made, name, getattr(row, name))
    made.place = place
    return made


def placed_task(row: TaskRow, place: bytes) -> PlacedTask:
    """A task's row that was written there."""
    made = PlacedTask.__new__(PlacedTask)
    for name in TaskRow.__slots__:
        setattr(made, name, getattr(row, name))
    made.place = place
    return made


_OF_RUN: Final = attrgetter(
    "stage", "reason", "generation", "started_at", "deadline_at", "deadline_remaining_ms", "applied_suspend",
    "applied_cancel", "applied_cancel_nodes", "cr_generation", "pending_outcome", "retry_counts", "error",
)  # fmt: skip  # a line a name says no more
"""What ``update_runs`` writes and ``advance_runs`` does not."""
_OF_TASK: Final = attrgetter(
    "attempt", "edges_settled", "edges_live", "ready_key", "queued_at", "first_failed_at", "fired", "stepped_over",
    "retries", "route", "error", "event", "input", "detail",
)  # fmt: skip  # as above
"""What ``update_tasks`` writes and ``settle_tasks`` does not."""


def is_step_of_run(before: RunRow | None, after: RunRow) -> TypeGuard[PlacedRun]:
    """Whether ``advance_runs`` can write what has become of a run."""
    return isinstance(before, PlacedRun) and bool(_OF_RUN(before) == _OF_RUN(after))


def is_end_of_task(before: TaskRow | None, after: TaskRow) -> TypeGuard[PlacedTask]:
    """Whether ``settle_tasks`` can write what has become of a task."""
    return isinstance(before, PlacedTask) and bool(_OF_TASK(before) == _OF_TASK(after))
