"""Runs as this process left them, so that their next report need not be preceded by reading them.

Purpose: a lone run whose transitions pass through one process is decided from memory, and each is written by one
statement (``direct``). Invariant: what is remembered was committed, and is of one version of the run's row; whether
that is still the newest one is proved by the statement that relies on it, so that forgetting, or being wrong, costs
time only. What may change without the run's row is not remembered: waits, timers, signals, leases of others, versions
of other definitions. Trade-off: at most 16 million characters of documents; of larger runs, and of those with unusual
rows, nothing is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.state import absorb
from partita.domain.state.copies import copy_task
from partita.domain.state.rows import TERMINAL, NodeKey, NodeState, TaskRow
from partita.domain.state.slices import Slice
from partita.engine.clock import DatabaseClock
from partita.engine.requests import PROTOCOL, Version
from partita.engine.turns import Group
from partita.store.direct import RunVersion
from partita.store.fences import EndedLease, EndedLeases
from partita.store.places import PlacedTask, placed_run, placed_task
from partita.store.slices import Loaded
from partita.store.writes import Placed

log = logging.getLogger(__name__)

_MOST: Final = 512
"""Runs that are remembered; the one that was left longest ago goes first."""
_ROWS: Final = 32
"""Task rows of a run that is remembered."""
_CHARACTERS: Final = 32_768
"""Characters of its documents."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A run after its last transaction."""

    version: Version
    slice: Slice
    """With places in its rows."""
    row: RunVersion
    written_at: datetime
    """The time of its last transaction."""
    leases: EndedLeases
    """Leases that this process has handed out and that have not ended, as their ends will tell them."""
    session: object
    """The connection over which it was committed: another one may lead to another server, on which it was not."""

    def fresh(self) -> Slice:
        """The slice, to be decided upon: what a decision notes in it, such as what it has looked up, is its own."""
        kept = self.slice
        made = Slice(kept.definition, kept.run, kept.input, dict(kept.tasks), set(kept.absent), kept.whole)
        made.outputs = set(kept.outputs)
        return made


class Memory:
    """One process's memory of runs, and of the engine's state."""

    __slots__ = ("_floor", "_runs", "clock")

    def __init__(self) -> None:
        self.clock = DatabaseClock()
        self._runs: dict[UUID, Remembered] = {}
        self._floor: datetime | None = None

    def learn(self, loaded: Loaded, at: float) -> None:
        """A transaction has read the engine's state and clock, as the one does that follows what was not proved."""
        self.clock.learn(loaded.now, at)
        self._floor = None if loaded.paused else loaded.retention_floor

    def state(self, at: float) -> Loaded | None:
        """The engine's state without any run; None when it is not known, or does not let the engine work."""
        now = self.clock.now(at)
        if now is None or self._floor is None:
            return None
        return Loaded(now, "", paused=False, oldest_protocol=PROTOCOL, retention_floor=self._floor)

    def recall(self, run_id: UUID, session: object) -> Remembered | None:
        """A run as it was left over this connection."""
        found = self._runs.get(run_id)
        return found if found is not None and session is not None and found.session is session else None

    def forget(self, run_ids: Iterable[UUID]) -> None:
        """Others are changing these runs, or they cannot be remembered any more."""
        if self._runs:
            for run_id in run_ids:
                self._runs.pop(run_id, None)

    def keep(self, group: Group, placed: Placed, session: object) -> None:
        """A transaction of this run alone was committed over this connection. Raises nothing: it is to be answered."""
        before = self._runs.pop(group.run_id, None)
        leases = {} if before is None else before.leases
        try:
            remembered = _remembered(group, placed, leases, session)
        except Exception:  # a defect here must not make a failure of what was committed
            log.exception("run %s: cannot be remembered", group.run_id)
            return
        if remembered is not None:
            while len(self._runs) >= _MOST:
                del self._runs[next(iter(self._runs))]
            self._runs[group.run_id] = remembered


def _remembered(group: Group, placed: Placed, leases: EndedLeases, session: object) -> Remembered | None:
    effects = group.effects
    if effects is None or effects.run.status in TERMINAL or not placed.run:
        return None
    after = absorb(group.slice, effects.full())
    input_ = _stored(after.input)
    tasks = _stored_tasks(after.tasks, placed.tasks, 0 if input_ is None else len(input_.text))
    if tasks is None or after.output is not None:
        return None
    run = placed_run(effects.run, placed.run)
    kept = Slice(after.definition, run, input_, tasks, after.absent, after.whole, after.outputs)
    handed = {
        (run.id, key.node, key.index, lease.lease_id): EndedLease(run.generation, lease.worker_id, placed.now)
        for key, lease in group.handed.items()
    }
    row = RunVersion(placed.run, run.id, placed.xid)
    return Remembered(group.version, kept, row, placed.now, {**_living(leases, group, tasks), **handed}, session)


def _living(leases: EndedLeases, group: Group, tasks: Mapping[NodeKey, TaskRow]) -> EndedLeases:
    """Those that have not ended, as far as it is known: a task that is tried for days has thousands of others."""
    living = {}
    for place, lease in leases.items():
        task = tasks.get(key := NodeKey(place[1], place[2]))
        if key not in group.handed and (task is None or task.state is NodeState.QUEUED):
            living[place] = lease
    return living


def _stored_tasks(
    tasks: Mapping[NodeKey, TaskRow], places: Mapping[NodeKey, bytes], size: int
) -> dict[NodeKey, TaskRow] | None:
    """Rows as they are stored; None when they are many, large together with what has this size, or unusual."""
    if len(tasks) > _ROWS:
        return None
    kept: dict[NodeKey, TaskRow] = {}
    for key, task in tasks.items():
        if task.detail is not None or (task.error is not None and task.error.details is not None):
            return None
        row = kept[key] = task if isinstance(task, PlacedTask) else _stored_task(task, places.get(key))
        size += sum(len(one.text) for one in (row.input, row.output, row.event) if one is not None)
    return kept if size <= _CHARACTERS else None


def _stored_task(task: TaskRow, place: bytes | None) -> TaskRow:
    row = copy_task(task) if place is None else placed_task(task, place)
    row.input, row.output, row.event = _stored(task.input), _stored(task.output), _stored(task.event)
    return row


def _stored(payload: Payload | None) -> Payload | None:
    """A document as it is stored: its value may be an object that a task's function keeps, and will change."""
    return None if payload is None else Payload.parse(payload.text)
