"""A workflow definition after parsing: the shape that the state machine and the validation work on.

Invariant: an instance is complete and consistent. It is made only by ``domain.manifest`` from a manifest that has no
problems, every expression in it is compiled, every edge is resolved, and it never changes (a version is immutable).
Durations are integer milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from partita.domain.expressions import Condition, DurationTemplate, Template
from partita.domain.payload import Json


class NodeKind(StrEnum):
    """What a node does; spelled as in manifests."""

    TASK = "task"
    SWITCH = "switch"
    WAIT = "wait"
    WAIT_FOR_EVENT = "waitForEvent"
    COMPUTE = "compute"


class Join(StrEnum):
    """When a node with several incoming edges fires."""

    ALL = "all"
    MERGE = "merge"
    ANY = "any"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of a retry policy: which failures it takes and how long to wait between tries."""

    match: tuple[str, ...]
    """Error types; ``any`` matches all but fatal, expression and cancelled. Empty: the same as ``any``."""
    when: Condition | None
    max_retries: int
    initial_delay_ms: int
    multiplier: float
    max_delay_ms: int
    max_elapsed_ms: int | None
    """Measured from the node's first failure that this tier took."""
    jitter: float
    """0 to 1: the share of the delay that varies."""


@dataclass(frozen=True, slots=True)
class Route:
    """An ``onError`` entry: which errors it catches and where they lead."""

    match: tuple[str, ...]
    when: Condition | None
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a switch; without ``when`` it is the otherwise case."""

    when: Condition | None
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """Work leased to a warm worker."""

    type: str
    queue: str


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """A durable timer: exactly one of the two is set."""

    duration: DurationTemplate | None
    until: Template | None
    """Renders to an RFC 3339 time; a past time completes at once."""


@dataclass(frozen=True, slots=True)
class EventAlternative:
    """One name (and schema) that a waitForEvent accepts."""

    name: Template
    """A plain or interpolated string."""
    schema: Json | None


@dataclass(frozen=True, slots=True)
class TimeoutRoute:
    """``onTimeout``: go on with an output, or take a route. Exactly one is set."""

    output: Template | None
    next: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class EventSpec:
    """A wait for a signal."""

    alternatives: tuple[EventAlternative, ...]
    any_of: bool
    """True when written as ``anyOf``: the output is then ``{name, payload}`` instead of the payload."""
    until: Condition | None
    on_timeout: TimeoutRoute | None
    ignore_earlier: bool


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a definition. Exactly the field of its kind is set."""

    name: str
    kind: NodeKind
    task: TaskSpec | None = None
    switch: tuple[Case, ...] = ()
    wait: WaitSpec | None = None
    event: EventSpec | None = None
    compute: Template | None = None
    join: Join = Join.ALL
    join_count: int = 0
    """The n of ``joinCount``; 0 unless ``join`` is COUNT."""
    cancel_remaining: bool = False
    when: Condition | None = None
    input: Template | None = None
    timeout: DurationTemplate | None = None
    """Attempt timeout of a task; whole timeout of a waitForEvent (already the default of the definition or engine)."""
    schedule_to_start_ms: int | None = None
    retry: tuple[Tier, ...] = ()
    on_error: tuple[Route, ...] = ()
    continue_on_failure: bool = False
    priority: int | None = None
    description: str = ""
    predecessors: tuple[str, ...] = ()
    """Sources of its edges in written order: dependsOn, then references, then sources that name it in ``next``."""
    successors: tuple[str, ...] = ()
    """Targets of its edges, in the order of the definition."""
    reads: frozenset[str] = frozenset()
    """Nodes whose output, error, state, … any of its expressions name."""
    reads_input: bool = False
    """Whether any of its expressions reads the run's input."""
    reads_from: bool = False
    """Whether any of its expressions reads ``from`` (the live predecessors)."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A validated definition version."""

    name: str
    namespace: str
    nodes: Mapping[str, Node]
    """In written order."""
    roots: tuple[str, ...]
    """Nodes without incoming edges, in written order."""
    output: Template | None = None
    output_reads: frozenset[str] = frozenset()
    input_schema: Json | None = None
    config: Mapping[str, Json] = field(default_factory=dict)
    timeout_ms: int | None = None
    fail_fast: bool = True
    description: str = ""
    content_hash: str = ""
    """Hex SHA-256 of the canonical parsed manifest; identifies the version."""
