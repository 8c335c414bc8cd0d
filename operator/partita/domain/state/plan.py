"""A definition prepared for deciding: what would otherwise be worked out for every event.

Invariant: a plan depends on its definition only and is never changed, but for facts that are filled in when first
asked for. Plans are remembered by the identity of the definition, which the plan keeps alive; the trade-off is a
bounded amount of memory against compiling a definition for every event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum

from partita.domain.errors import InvalidError
from partita.domain.expressions import DurationTemplate, Template
from partita.domain.model import Definition, Join, Node, NodeKind
from partita.domain.payload import Payload
from partita.domain.state.rows import GROUP, UNDO, NodeKey, Stage
from partita.domain.state.slices import Need

REMEMBERED = 512
"""Plans kept; the oldest is forgotten first."""


class Verdict(Enum):
    """What the edges settled so far mean for a join."""

    OPEN = "open"
    FIRE = "fire"
    SKIP = "skip"


class NodePlan:
    """One node with its edges as objects."""

    __slots__ = (
        "ancestors",
        "edges",
        "input",
        "join",
        "key",
        "kind",
        "loop",
        "name",
        "needed",
        "node",
        "order",
        "plain",
        "predecessors",
        "stage",
        "starts",
        "timeout_ms",
        "tracked",
        "undo",
        "undoes",
    )

    def __init__(self, node: Node, stage: Stage = Stage.MAIN, undoes: NodePlan | None = None) -> None:
        self.node = node
        self.name = node.name
        self.stage = stage
        self.undoes = undoes
        """Of the plan of undo rows: the node that they reverse."""
        self.undo: NodePlan | None = _undo(self)
        self.loop = "forEach" if node.for_each is not None else "repeat" if node.repeat is not None else ""
        self.key = NodeKey(node.name, GROUP if self.loop else 0)
        """The row at which edges end; a loop has one row more for each item or iteration, an undo one for each row
        that is reversed."""
        self.kind = node.kind.value
        self.starts = self.loop or self.kind
        """What its start depends on: a loop, or the kind."""
        self.join = node.join
        self.needed = node.join_count if node.join is Join.COUNT else 1
        self.order = 0
        """Position in a topological order."""
        self.predecessors: tuple[NodePlan, ...] = ()
        self.edges: tuple[tuple[NodePlan, bool], ...] = ()
        """Targets, and whether the edge is one that the source has to choose."""
        self.tracked = len(node.predecessors) > 1
        """Whether its row must be looked at when an edge settles (joins, and nodes that a join may cancel)."""
        self.ancestors: tuple[NodePlan, ...] = ()
        """With ``cancelRemaining``: everything upstream, nearest first."""
        self.input: Payload | None = None if undoes is not None else _constant(node.input)
        """The attempt's input where it is the same for every run (and every item)."""
        self.timeout_ms: int | None = node.timeout.constant if node.timeout is not None else None
        """The timeout where it is the same for every run."""
        self.plain = False
        """Its end evaluates nothing and reads no other row: a task that only plain tasks of one source follow."""

    @property
    def constant(self) -> bool:
        """Whether it starts in the same way in every run: a task without ``when``, its input and timeout constant."""
        node = self.node
        known_timeout = self.timeout_ms is not None or node.timeout is None
        return self.starts == "task" and node.when is None and self.input is not None and known_timeout

    def key_of(self, row_index: int) -> NodeKey:
        """The key of a row of this plan; that of its own row is made once."""
        key = self.key
        return key if row_index == key.index else NodeKey(self.name, row_index)

    def is_part(self, row_index: int) -> bool:
        """Whether a row of this plan is an item, an iteration or an undo, none of which has edges."""
        return self.undoes is not None or row_index != self.key.index

    def verdict(self, settled: int, live: int) -> Verdict:
        """What a join does with so many edges settled, so many of them live."""
        count = len(self.predecessors)
        if self.join is Join.ALL:
            if settled > live:
                return Verdict.SKIP
            return Verdict.FIRE if live == count else Verdict.OPEN
        if self.join is Join.MERGE:
            if settled < count:
                return Verdict.OPEN
            return Verdict.FIRE if live else Verdict.SKIP
        if live >= self.needed:
            return Verdict.FIRE
        return Verdict.SKIP if live + count - settled < self.needed else Verdict.OPEN


class Plan:
    """A definition with its nodes planned."""

    __slots__ = (
        "ahead",
        "definition",
        "finally_roots",
        "main_total",
        "nodes",
        "output_keys",
        "roots",
        "total",
        "undoable",
    )

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        final = definition.finally_
        self.nodes: dict[str, NodePlan] = {name: NodePlan(node) for name, node in definition.nodes.items()}
        """Every plan by the name in its rows: nodes, finally's nodes, and undo rows."""
        self.main_total = len(self.nodes)
        if final is not None:
            self.nodes |= {name: NodePlan(node, Stage.FINALLY) for name, node in final.nodes.items()}
        self.total = len(self.nodes)
        """Nodes of the run, those of finally included."""
        self.undoable = any(plan.undo is not None for plan in self.nodes.values())
        self.nodes |= {plan.undo.name: plan.undo for plan in self.nodes.values() if plan.undo is not None}
        self.ahead: dict[str, Need] = {}
        """What settling a node will probably read; filled in by ``foresee``."""
        self.roots = tuple(self.nodes[name] for name in definition.roots)
        self.finally_roots = tuple(self.nodes[name] for name in final.roots) if final is not None else ()
        self.output_keys = frozenset(self.nodes[name].key for name in definition.output_reads)
        for plan in self.nodes.values():
            plan.predecessors = tuple(self.nodes[name] for name in plan.node.predecessors)
            chosen = frozenset(chosen_targets(plan.node))
            plan.edges = tuple((self.nodes[name], name in chosen) for name in plan.node.successors)
        self._order()
        self._track_cancellable()
        for plan in self.nodes.values():
            plan.plain = _is_plain(plan)

    def _order(self) -> None:
        waiting = {name: len(plan.predecessors) for name, plan in self.nodes.items()}
        ready = deque(plan for plan in self.nodes.values() if not plan.predecessors)
        position = 0
        while ready:
            plan = ready.popleft()
            plan.order = position
            position += 1
            for target, _ in plan.edges:
                waiting[target.name] -= 1
                if not waiting[target.name]:
                    ready.append(target)

    def _track_cancellable(self) -> None:
        for plan in self.nodes.values():
            if plan.node.cancel_remaining:
                plan.ancestors = _upstream(plan)
                for ancestor in plan.ancestors:
                    ancestor.tracked = True


def _is_plain(plan: NodePlan) -> bool:
    if plan.starts != "task" or plan.stage is not Stage.MAIN or plan.undo is not None:
        return False
    return all(
        not chosen and not target.tracked and target.needed <= 1 and target.constant for target, chosen in plan.edges
    )


def chosen_targets(node: Node) -> Iterable[str]:
    """Targets of the edges that are live only when the node chooses them."""
    for case in node.switch:
        yield from case.next
    for route in node.on_error:
        yield from route.next
    if node.event is not None and node.event.on_timeout is not None:
        yield from node.event.on_timeout.next or ()


def _undo(plan: NodePlan) -> NodePlan | None:
    undo = plan.node.undo
    if undo is None:
        return None
    timeout = None if undo.timeout_ms is None else DurationTemplate.of(undo.timeout_ms)
    node = Node(
        name=plan.name + UNDO, kind=NodeKind.TASK, task=undo.task, input=undo.input, timeout=timeout, retry=undo.retry
    )
    return NodePlan(node, Stage.UNDO, plan)


def _upstream(plan: NodePlan) -> tuple[NodePlan, ...]:
    found: dict[str, NodePlan] = {}
    pending = list(plan.predecessors)
    while pending:
        ancestor = pending.pop()
        if ancestor.name not in found:
            found[ancestor.name] = ancestor
            pending.extend(ancestor.predecessors)
    return tuple(sorted(found.values(), key=lambda one: -one.order))


def _constant(template: Template | None) -> Payload | None:
    if template is None:
        return Payload("{}", {})
    if not template.constant:
        return None
    try:
        payload = Payload.of(template.render({}))
        return Payload(payload.text, payload.value)
    except InvalidError:  # met again, and recorded, when the node starts
        return None


_plans: dict[int, Plan] = {}


def plan_of(definition: Definition) -> Plan:
    """The plan of a definition, made at the first call."""
    plan = _plans.get(id(definition))
    if plan is None or plan.definition is not definition:
        plan = Plan(definition)
        if len(_plans) >= REMEMBERED:
            _plans.pop(next(iter(_plans)), None)
        _plans[id(definition)] = plan
    return plan
