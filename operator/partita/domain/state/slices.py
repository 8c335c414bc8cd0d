"""What a decision may know: the part of a run that was loaded, bounds and the clock; and what it still has to read.

Invariant: a slice says what of it was looked up, so that what is not there is never taken for what does not exist.
Trade-off: the usual event reads a few rows, and an unusual one costs another round, instead of every event a whole run.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from partita.domain.expressions.limits import VISITS
from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.rows import NodeKey, RunRow, SignalRow, TaskRow, TimerRow, WaitRow


class DefinitionName(NamedTuple):
    """A definition of the run's namespace; version None is the deployed one."""

    name: str
    version: int | None = None


@dataclass(slots=True)
class Slice:
    """The part of one run that was loaded. ``decide`` never changes it; ``absorb`` makes the next one.

    ``whole`` says that every task row (small columns) of the run is here; otherwise a key in neither ``tasks`` nor
    ``absent`` was not looked up. ``outputs`` holds the payloads that were asked for, by key: a task row's ``output``,
    ``input`` and ``event`` are filled only for those. Timers, waits and unconsumed signals are whole when not None.
    """

    definition: Definition
    run: RunRow | None
    input: Payload | None = None
    tasks: dict[NodeKey, TaskRow] = field(default_factory=dict)
    absent: set[NodeKey] = field(default_factory=set)
    whole: bool = False
    outputs: set[NodeKey] = field(default_factory=set)
    """Keys whose payload columns are loaded."""
    timers: list[TimerRow] | None = None
    waits: list[WaitRow] | None = None
    signals: list[SignalRow] | None = None
    leased: set[NodeKey] | None = None
    """Nodes with a live lease; loaded with the mailbox."""
    seen_signal_ids: set[str] = field(default_factory=set)
    """Ids recorded before, among those that the batch's events carry."""
    versions: dict[DefinitionName, int] = field(default_factory=dict)
    """Versions that were looked up; 0 where there is none that may be started."""
    output: Payload | None = None
    """The run's output if it has been evaluated; loaded with the input."""


def new_slice(definition: Definition, run: RunRow) -> Slice:
    """A slice of a run of which nothing else is loaded yet; made for every event, see ``effects.new_effects``."""
    made = _new(Slice)
    made.definition, made.run = definition, run
    made.input = made.output = made.timers = made.waits = made.signals = made.leased = None
    made.tasks, made.versions = {}, {}
    made.absent, made.outputs, made.seen_signal_ids = set(), set(), set()
    made.whole = False
    return made


_new: Final = Slice.__new__


@dataclass(slots=True)
class Need:
    """Rows that a decision lacks. The shell loads them for the whole batch and decides again."""

    rows: set[NodeKey] = field(default_factory=set)
    outputs: set[NodeKey] = field(default_factory=set)
    """Rows with their payloads; a key need not be in ``rows`` as well."""
    input: bool = False
    whole: bool = False
    """Every task row's small columns."""
    mailbox: bool = False
    """This run's timers, waits, leases and unconsumed signals, and which of the events' signal ids are recorded."""
    versions: set[DefinitionName] = field(default_factory=set)
    """Definitions of this namespace of which children are to be started."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.outputs or self.input or self.whole or self.mailbox or self.versions)

    def merge(self, other: Need) -> None:
        """Add what another decision of the same run lacks."""
        self.rows |= other.rows
        self.outputs |= other.outputs
        self.input |= other.input
        self.whole |= other.whole
        self.mailbox |= other.mailbox
        self.versions |= other.versions


@record
class Limits:
    """Bounds that decisions obey; the shell fills them from the settings."""

    output_bytes: int = 1_048_576
    attempt_timeout_ms: int = 300_000
    lost_leases: int = 10
    unknown_types: int = 10
    asked_retries: int = 3
    signals_buffered: int = 10_000
    signals_bytes: int = 16_777_216
    """Of the payloads of signals that wait to be taken."""
    child_depth: int = 50
    loop_items: int = 10_000
    loop_chunk: int = 500
    """Items of a forEach that one transaction makes."""
    visits: int = VISITS
    """What the expressions of one decision may spend before it leaves the rest to a transaction of its own."""
    drain_ms: int = 60_000
    """How long undo waits for attempts in flight."""
    undo_tries: int = 5
    """Tries of an undo task whose definition has no default retry."""
    error_message: int = 4_096
    """Characters of an error's message that are kept."""


@record
class Context:
    """What a decision may know besides the slice."""

    now: datetime
    """The database's clock, read after the run was locked."""
    limits: Limits = field(default_factory=Limits)
    patterns: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What ends that may repeat came to, by their kind (see ``repeats``): remembers, and decides nothing."""
