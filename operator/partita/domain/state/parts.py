"""What belongs to one part of a loop: the names that its expressions see, and what is made of all parts at the end.

Invariant: what an item or an iteration sees follows from its index and from stored rows alone, so that a retry sees
what the first attempt saw; the rows are read only if an expression names them.
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.domain.payload import Json, Payload
from partita.domain.state.draft import Draft
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import Loop, NodeKey, NodeState, TaskRow


@dataclass(frozen=True, slots=True)
class Items:
    """What a forEach runs over; ``keys`` is None for a list."""

    keys: list[str] | None
    values: list[Json]

    @classmethod
    def of(cls, items: Json) -> Items:
        """The elements of a list, or the values of an object in the order of their keys."""
        if not isinstance(items, dict):
            return cls(None, items)
        keys = sorted(items)
        return cls(keys, [items[key] for key in keys])

    def names(self, variable: str, index: int) -> dict[str, Json]:
        """What the expressions of an item see."""
        key = None if self.keys is None else self.keys[index]
        return {"index": index, "key": key, variable: self.values[index]}


def items_of(draft: Draft, plan: NodePlan) -> Items:
    """The items of a forEach that has started. Raises Lacking."""
    group = draft.row(plan.key)
    assert group is not None  # noqa: S101  # a part has a group
    return Items.of(draft.input_of(group).value["items"])


def part_names(draft: Draft, plan: NodePlan, index: int, wanted: frozenset[str]) -> dict[str, Json]:
    """What the expressions of an item or an iteration see besides the usual names. Raises Lacking."""
    spec = plan.node.for_each
    if spec is None:
        return _iteration_names(draft, plan, index, wanted)
    if spec.variable in wanted or "key" in wanted:
        return items_of(draft, plan).names(spec.variable, index)
    return {"index": index}


def _iteration_names(draft: Draft, plan: NodePlan, index: int, wanted: frozenset[str]) -> dict[str, Json]:
    names: dict[str, Json] = {"iteration": index}
    if "previous" in wanted:
        names["previous"] = _previous(draft, plan, index)
    return names


def _previous(draft: Draft, plan: NodePlan, index: int) -> Json:
    if index == 0:
        return None
    row = draft.row(NodeKey(plan.name, index - 1))
    if row is None:
        return None
    if not draft.payloads_loaded(row):
        draft.lacking().outputs.add(row.key)
        raise Lacking
    return row.output.value if row.output is not None else None


def joined_outputs(draft: Draft, plan: NodePlan, loop: Loop) -> Payload:
    """The outputs of all items as a list, or by key; null for an item that did not complete. Raises Lacking.

    Documents are joined as they are stored: nothing is parsed.
    """
    outputs: list[Payload | None] = [None] * loop.total
    missing: set[NodeKey] = set()
    for index in range(loop.next):
        key = NodeKey(plan.name, index)
        row = draft.known(key)
        if row is None or (row.state is NodeState.COMPLETED and not draft.payloads_loaded(row)):
            missing.add(key)
        elif row.state is NodeState.COMPLETED:
            outputs[index] = row.output
    if missing:
        draft.lacking().outputs |= missing
    keys = items_of(draft, plan).keys if loop.keyed else None
    if missing:
        raise Lacking
    return Payload.joined(outputs) if keys is None else Payload.keyed(keys, outputs)


def partial_output(draft: Draft, plan: NodePlan, group: TaskRow) -> Payload | None:
    """What a forEach that failed or was cancelled has achieved; None if that is nothing, or more than is kept."""
    loop = group.detail.loop if group.detail is not None else None
    if plan.node.for_each is None or loop is None or loop.size > draft.limits.output_bytes:
        return None
    return joined_outputs(draft, plan, loop)


def collected(draft: Draft, plan: NodePlan, loop: Loop) -> Payload:
    """What ``collect`` gathered of every iteration, as a list. Raises Lacking."""
    gathered: list[Payload | None] = []
    missing: set[NodeKey] = set()
    for index in range(loop.born):
        key = NodeKey(plan.name, index)
        row = draft.known(key)
        if row is None:
            missing.add(key)
        else:
            gathered.append(row.detail.collected if row.detail is not None else None)
    if missing:
        draft.lacking().rows |= missing
        raise Lacking
    return Payload.joined(gathered)
