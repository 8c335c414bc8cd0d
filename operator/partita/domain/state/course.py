"""Where a forEach stands while a decision moves it on: its counters, and what they mean.

Invariant: the counters are the group row's alone, read once and written back once (``save``); they are never counted
from the items. An item is in flight from its turn until it has settled, also while a suspension keeps it from starting.
"""

from __future__ import annotations

from dataclasses import replace

from partita.domain.model import ForEach
from partita.domain.state.draft import Draft
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import Detail, Loop, TaskRow


class Course:
    """A forEach in the making; ``group`` is the image of its row."""

    __slots__ = (
        "born",
        "closing",
        "completed",
        "draft",
        "dropped",
        "failed",
        "faulty",
        "group",
        "keyed",
        "next",
        "plan",
        "running",
        "size",
        "spec",
        "total",
    )

    def __init__(self, draft: Draft, plan: NodePlan, group: TaskRow) -> None:
        self.draft, self.plan, self.group = draft, plan, group
        self.spec = spec_of(plan)
        self.dropped = False
        """What was in flight has been cancelled."""
        loop = loop_of(group)
        self.total, self.born, self.next = loop.total, loop.born, loop.next
        self.running, self.completed, self.failed = loop.running, loop.completed, loop.failed
        self.closing, self.keyed, self.faulty, self.size = loop.closing, loop.keyed, loop.faulty, loop.size

    def loop(self) -> Loop:
        """The counters as they are stored."""
        return Loop(
            self.total,
            self.born,
            self.next,
            self.running,
            self.completed,
            self.failed,
            self.closing,
            self.keyed,
            self.faulty,
            self.size,
        )

    def save(self) -> None:
        """Put the counters back into the group's row."""
        self.group.detail = replace(self.group.detail or Detail(), loop=self.loop())

    @property
    def in_flight(self) -> int:
        """Items whose turn has come and that have not settled."""
        return self.next - self.completed - self.failed

    @property
    def room(self) -> bool:
        """Whether a further item may start now."""
        return not self.closing and self.next < self.total and self.in_flight < self.spec.max_parallel

    @property
    def over(self) -> bool:
        """Whether the forEach has nothing more to wait for."""
        return self.dropped or (self.in_flight == 0 and (bool(self.closing) or self.next == self.total))

    @property
    def joined(self) -> bool:
        """Whether as many items have completed as ``joinCount`` asks for."""
        return bool(self.spec.join_count) and self.completed >= self.spec.join_count

    @property
    def broken(self) -> bool:
        """Whether more items have failed than are tolerated, or than leave ``joinCount`` within reach."""
        spec = self.spec
        spare = self.total - spec.join_count if spec.join_count else self.total
        if self.failed > spare:
            return True
        if spec.max_failures_percent is not None:
            return self.failed * 100 > spec.max_failures_percent * self.total
        tolerated = spec.max_failures
        if tolerated is None:
            tolerated = spare if spec.join_count else 0
        return self.failed > tolerated


def spec_of(plan: NodePlan) -> ForEach:
    """What a forEach node says."""
    spec = plan.node.for_each
    assert spec is not None  # noqa: S101  # asked by the caller
    return spec


def loop_of(group: TaskRow) -> Loop:
    """The counters of a loop that has started."""
    assert group.detail is not None  # noqa: S101  # a loop that has started has counters
    assert group.detail.loop is not None  # noqa: S101  # as above
    return group.detail.loop
