"""What one decision has read, as it has left it so far, and what it lacks.

Invariant: nothing of the slice is ever changed. Rows and payloads that were not loaded are noted in ``need`` and end
the smallest step that wanted them (``Lacking``), so that one pass finds as much as possible of what is missing.
"""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Final

from partita.domain.payload import Payload
from partita.domain.state.effects import new_effects
from partita.domain.state.plan import Plan, plan_of
from partita.domain.state.rows import (
    SETTLED,
    TERMINAL,
    NodeKey,
    RunRow,
    RunStatus,
    SignalRow,
    TaskRow,
    TimerRow,
    WaitRow,
)
from partita.domain.state.slices import Context, DefinitionName, Need, Slice

_BY_SEQ: Final = attrgetter("seq")


class Lacking(Exception):
    """A step stops because rows have to be loaded first; they are in the draft's ``need``."""


class Reading:
    """What one decision sees of its run."""

    __slots__ = (
        "effects",
        "fresh",
        "limits",
        "need",
        "now",
        "plan",
        "run",
        "signals_left",
        "slice",
        "tasks",
        "waits_left",
    )

    def __init__(self, slice_: Slice, context: Context, run: RunRow) -> None:
        self.slice = slice_
        self.plan: Plan = plan_of(slice_.definition)
        self.now: datetime = context.now
        self.limits = context.limits
        self.run = run
        self.fresh = slice_.run is None
        """The run is being started, so that nothing of it can be stored yet."""
        self.need: Need | None = None
        self.effects = new_effects(run)
        self.tasks = self.effects.tasks
        self.waits_left: list[WaitRow] | None = None
        self.signals_left: list[SignalRow] | None = None

    def lacking(self) -> Need:
        """The needs, to be added to."""
        if self.need is None:
            self.need = Need()
        return self.need

    def row(self, key: NodeKey) -> TaskRow | None:
        """A node's row as this decision has left it, or None when the node has none. Raises Lacking."""
        row = self.tasks.get(key)
        if row is not None:
            return row
        row = self.slice.tasks.get(key)
        if row is None and not (self.slice.whole or self.fresh or key in self.slice.absent):
            self.lacking().rows.add(key)
            raise Lacking
        return row

    def known(self, key: NodeKey) -> TaskRow | None:
        """A row as this decision has left it if it has been loaded; otherwise None."""
        return self.tasks.get(key) or self.slice.tasks.get(key)

    def input_of(self, row: TaskRow) -> Payload:
        """The stored input of a row. Raises Lacking."""
        if row.input is None:
            self.lacking().outputs.add(row.key)
            raise Lacking
        return row.input

    def rows(self) -> list[TaskRow]:
        """Every row as this decision has left it. Raises Lacking."""
        self._need_whole()
        tasks = self.tasks
        return [row for key, row in self.slice.tasks.items() if key not in tasks] + list(tasks.values())

    def _need_whole(self) -> None:
        if not (self.slice.whole or self.fresh):
            self.lacking().whole = True
            raise Lacking

    def unsettled(self) -> list[TaskRow]:
        """Every row that has not settled. Raises Lacking."""
        self._need_whole()
        tasks = self.tasks
        rows = [row for key, row in self.slice.tasks.items() if key not in tasks and row.state not in SETTLED]
        return rows + [row for row in tasks.values() if row.state not in SETTLED]

    def input(self) -> Payload:
        """The run's input. Raises Lacking."""
        payload = self.effects.input or self.slice.input
        if payload is None:
            self.lacking().input = True
            raise Lacking
        return payload

    def output(self) -> Payload | None:
        """The run's output, once it has been evaluated. Raises Lacking."""
        if self.effects.output is None and self.slice.input is None and not self.fresh:
            self.lacking().input = True
            raise Lacking
        return self.effects.output or self.slice.output

    def payloads_loaded(self, row: TaskRow) -> bool:
        """Whether ``output`` and ``event`` of a row can be trusted to be what is stored."""
        return row.output is not None or self.fresh or NodeKey(row.node, row.index) in self.slice.outputs

    def timers(self) -> list[TimerRow]:
        """The stored timers. Raises Lacking."""
        if self.slice.timers is None and not self.fresh:
            self._lack_mailbox()
        return self.slice.timers or []

    def leased(self) -> set[NodeKey]:
        """Nodes with a live lease. Raises Lacking."""
        if self.slice.leased is None and not self.fresh:
            self._lack_mailbox()
        return self.slice.leased or set()

    def waits(self) -> list[WaitRow]:
        """Waits for signals as this decision has left them. Raises Lacking."""
        if self.waits_left is None:
            if self.slice.waits is None and not self.fresh:
                self._lack_mailbox()
            self.waits_left = sorted(self.slice.waits or (), key=lambda wait: wait.seq)
        return self.waits_left

    def signals(self) -> list[SignalRow]:
        """Unconsumed signals as this decision has left them, the oldest first. Raises Lacking."""
        if self.signals_left is None:
            if self.slice.signals is None and not self.fresh:
                self._lack_mailbox()
            self.signals_left = sorted(self.slice.signals or (), key=_BY_SEQ)
        return self.signals_left

    def seen(self, signal_id: str) -> bool:
        """Whether a signal of this id was recorded before. Raises Lacking."""
        if self.slice.waits is None and not self.fresh:
            self._lack_mailbox()
        if signal_id in self.slice.seen_signal_ids:
            return True
        return any(recorded.row.id == signal_id for recorded in self.effects.record_signals)

    def _lack_mailbox(self) -> None:
        self.lacking().mailbox = True
        raise Lacking

    @property
    def suspended(self) -> bool:
        """Whether nothing new may start."""
        return self.run.status is RunStatus.SUSPENDED

    @property
    def terminal(self) -> bool:
        """Whether the run has ended."""
        return self.run.status in TERMINAL

    def version(self, name: DefinitionName) -> int:
        """The version of a definition that a child may be started of; 0 when there is none. Raises Lacking."""
        found = self.slice.versions.get(name)
        if found is None:
            self.lacking().versions.add(name)
            raise Lacking
        return found
