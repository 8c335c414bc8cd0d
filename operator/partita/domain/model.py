"""A workflow definition after parsing: the shape that the state machine and the validation work on.

Invariant: an instance is complete and consistent. It is made only by ``domain.manifest``, from a manifest without
problems or from a stored one that is at most linted; every expression in it is compiled, every edge is resolved, and it
never changes (a version is immutable).
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
    WORKFLOW = "workflow"
    FAIL = "fail"
    SUCCEED = "succeed"


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
class WorkflowSpec:
    """A child run: of a definition by name, or of a subflow of this one. Exactly one of name and subflow is set."""

    name: str = ""
    version: int | None = None
    """Of the definition ``name``; None takes the deployed one at the moment when the node starts."""
    subflow: str = ""
    detach: bool = False
    """Start it and do not wait: the output is then ``{runId}``."""


@dataclass(frozen=True, slots=True)
class FailSpec:
    """Ends the run or subflow as Failed."""

    type: str
    message: Template | None = None
    """A plain or interpolated string."""


@dataclass(frozen=True, slots=True)
class SucceedSpec:
    """Ends the run or subflow as Succeeded, with this output (None: null) instead of the definition's."""

    output: Template | None = None


@dataclass(frozen=True, slots=True)
class ForEach:
    """Run the node once for each item of a list or map."""

    items: Template
    """Renders to a list, or to an object whose values are the items, in the order of their keys."""
    variable: str = "item"
    """Written ``as``: the name that an item has in expressions, beside ``index`` and, for objects, ``key``."""
    max_parallel: int = 100
    max_failures: int | None = None
    """Failed items that are tolerated; None: as many as ``join_count`` allows, none without it."""
    max_failures_percent: int | None = None
    """The same as a share of the items, instead of ``max_failures``."""
    join_count: int = 0
    """Completed items after which no further one starts; 0: all of them."""
    cancel_remaining: bool = False
    """Cancel the items in flight when ``join_count`` is reached or the node fails, instead of waiting for them."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run the node again and again. Exactly one of until and while is set; both are looked at after an iteration."""

    until: Condition | None = None
    while_: Condition | None = None
    delay: DurationTemplate | None = None
    """Between the end of an iteration and the start of the next one."""
    max_iterations: int = 1_000
    collect: Template | None = None
    """One value of each iteration; the node's output is then their list, otherwise the last iteration's output."""


@dataclass(frozen=True, slots=True)
class Undo:
    """What reverses a Completed node when the run ends other than Succeeded."""

    task: TaskSpec
    input: Template | None = None
    """Reads the node's own ``input``, ``output`` and ``error``, and ``config``, ``run`` and ``now``."""
    timeout_ms: int | None = None
    """Attempt timeout: the definition's default."""
    retry: tuple[Tier, ...] = ()
    """The definition's default; empty: five tries."""


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
    workflow: WorkflowSpec | None = None
    fail: FailSpec | None = None
    succeed: SucceedSpec | None = None
    for_each: ForEach | None = None
    """Of a task or workflow; not together with ``repeat``."""
    repeat: Repeat | None = None
    undo: Undo | None = None
    """Of a task or workflow."""
    join: Join = Join.ALL
    join_count: int = 0
    """The n of ``joinCount``; 0 unless ``join`` is COUNT."""
    cancel_remaining: bool = False
    when: Condition | None = None
    input: Template | None = None
    timeout: DurationTemplate | None = None
    """Attempt timeout of a task, of each item or iteration in a loop; whole timeout of a waitForEvent or a child run
    (already the default of the definition or engine)."""
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
class Finally:
    """Nodes that run after every end but ``cancel: Now``. Their edges lead among themselves; they read any node."""

    nodes: Mapping[str, Node]
    """In written order; names differ from those of the flow's own nodes."""
    roots: tuple[str, ...]
    timeout_ms: int | None = None
    """Of the whole stage."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A validated definition version, or one of its subflows, which are executed as definitions of their own."""

    name: str
    """The definition's name, also of a subflow."""
    namespace: str
    nodes: Mapping[str, Node]
    """In written order."""
    roots: tuple[str, ...]
    """Nodes without incoming edges, in written order."""
    subflow: str = ""
    """Of a subflow its name."""
    subflows: Mapping[str, Definition] = field(default_factory=dict, compare=False, repr=False)
    """All of the version: the same in the definition and in each of its subflows (so they are not compared)."""
    finally_: Finally | None = None
    output: Template | None = None
    output_reads: frozenset[str] = frozenset()
    input_schema: Json | None = None
    config: Mapping[str, Json] = field(default_factory=dict)
    timeout_ms: int | None = None
    fail_fast: bool = True
    description: str = ""
    content_hash: str = ""
    """Hex SHA-256 of the canonical parsed manifest; identifies the version."""

    def flow(self, subflow: str) -> Definition:
        """What a run of this version executes: the definition itself, or one of its subflows. Raises KeyError."""
        return self.subflows[subflow] if subflow else self
