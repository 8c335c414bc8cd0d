"""What became of the runs of a realm, in the shape in which the reference says it."""

from __future__ import annotations

from typing import Any

from partita.domain.model import Node
from partita.domain.payload import Payload
from partita.domain.state.rows import GROUP, NodeKey, TaskRow
from tests.property.memory import Memory
from tests.property.realm import Realm
from tests.property.reference import Result
from tests.property.reference.view import DONE, REASONS


def outcome_of(realm: Realm) -> Result:
    """Everything that is compared."""
    runs = {realm.path(store): _run_result(realm, store) for store in realm.stores.values()}
    signals = {
        (realm.path(store), name): (one.consumed_by, bool(one.refused))
        for store in realm.stores.values()
        for name, one in store.signals.items()
    }
    return Result(runs, signals)


def _value(realm: Realm, payload: Payload | None) -> Any:
    return realm.named(payload.value) if payload is not None else None


def _run_result(realm: Realm, store: Memory) -> dict[str, Any]:
    run, definition = realm.run(store), store.definition
    finally_ = definition.finally_.nodes if definition.finally_ is not None else {}
    return {
        "status": run.status.value,
        "reason": run.reason if run.reason in REASONS else "",
        "error": run.error.type if run.error is not None and run.status.value == "Failed" else None,
        "output": _value(realm, store.output),
        "cut": any(row.kind == "succeed" and row.state.value == "Completed" for row in store.tasks.values()),
        "nodes": {name: _node_result(realm, store, node) for name, node in definition.nodes.items()},
        "finally": {name: _node_result(realm, store, node) for name, node in finally_.items()},
        "undone": _undone(realm, store),
    }


def _node_result(realm: Realm, store: Memory, node: Node) -> dict[str, Any]:
    looped = node.for_each is not None or node.repeat is not None
    row = store.tasks.get(NodeKey(node.name, GROUP if looped else 0))
    state = row.state.value if row is not None else "Cancelled"
    works = [one for key, one in store.tasks.items() if key.node == node.name and key.index != GROUP]
    return {
        "state": state,
        "stepped": row is not None and row.stepped_over,
        "route": sorted(row.route) if row is not None and row.route is not None else None,
        "output": _value(realm, row.output) if row is not None and state == "Completed" else None,
        "error": row.error.type if row is not None and row.error is not None and state == "Failed" else None,
        "works": {one.index: _work(realm, one) for one in works if one.attempt and one.state in DONE},
    }


def _work(realm: Realm, row: TaskRow) -> tuple[Any, ...]:
    given = _value(realm, row.input)
    return row.state.value, row.attempt, given or {}, _value(realm, row.output)


def _undone(realm: Realm, store: Memory) -> list[tuple[Any, ...]]:
    first: dict[NodeKey, int] = {}
    for seq, line in sorted(store.history.items()):
        if str(line[1]).endswith("~undo"):
            first.setdefault(NodeKey(str(line[1]), int(str(line[6]))), seq)
    rows = [store.tasks[key] for key in first if key in store.tasks]
    return [(row.node, row.index, row.state.value, _value(realm, row.input) or {}) for row in rows if row.state in DONE]
