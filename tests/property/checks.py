"""The invariants that hold after every transaction, as far as one run can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.domain.state.rows import ACTIVE, FROZEN, GROUP, SETTLED, UNDO, Loop, NodeKey, NodeState, RunRow, TaskRow

if TYPE_CHECKING:
    from tests.property.memory import Memory


def check_run(store: Memory) -> None:
    """Counters agree with what is counted; what has ended has nothing left; what has not ended waits for something."""
    run = store.run
    assert run is not None
    rows = store.tasks.values()
    active = sum(row.state in ACTIVE for row in rows)
    done = sum(row.state in SETTLED for row in rows if _is_node(store, row))
    assert run.active == active, f"active is {run.active}, counted {active}"
    assert run.done == done, f"done is {run.done}, counted {done}"
    last = len(store.definition.finally_.nodes) if store.definition.finally_ is not None else 0
    assert run.total == len(store.definition.nodes) + last, f"total is {run.total}"
    for row in rows:
        if row.index == GROUP and row.detail is not None and row.detail.loop is not None:
            _check_loop(store, row, row.detail.loop)
    if run.finished_at is not None:
        left = [*store.ready, *store.leases, *store.timers, *store.waits]
        assert not left, f"a finished run has work: {left}"
        assert active == 0
        return
    _check_alive(store, run)


def _is_node(store: Memory, row: TaskRow) -> bool:
    """Whether the row stands for a node, and not for an item, an iteration or what reverses something."""
    if row.node.endswith(UNDO):
        return False
    finally_ = store.definition.finally_
    node = store.definition.nodes.get(row.node) or (finally_.nodes if finally_ is not None else {})[row.node]
    return row.index == (GROUP if node.for_each is not None or node.repeat is not None else 0)


def _check_loop(store: Memory, row: TaskRow, loop: Loop) -> None:
    items = [one for key, one in store.tasks.items() if key.node == row.node and key.index >= 0]
    counted = {
        "born": len(items),
        "completed": sum(one.state is NodeState.COMPLETED for one in items),
        "failed": sum(one.state is NodeState.FAILED for one in items),
        "running": sum(one.state in ACTIVE for one in items),
    }
    kept = {name: getattr(loop, name) for name in counted}
    if row.state is NodeState.WAITING:
        assert kept == counted, f"{row.node} says {kept}, counted {counted}"
    else:
        assert counted["running"] == 0 or row.state in SETTLED, f"{row.node} has items but is {row.state}"
    assert sorted(one.index for one in items) == list(range(len(items))), f"items of {row.node} have gaps"


def _check_alive(store: Memory, run: RunRow) -> None:
    suspended = run.status.value == "Suspended"
    parked = any(row.fired and row.state is NodeState.PENDING for row in store.tasks.values())
    assert not parked or suspended or store.left, "a node is parked although the run is not suspended"
    timers = {NodeKey(key.node, key.index) for key in store.timers}
    waits = {NodeKey(wait.node, wait.index) for wait in store.waits if wait.child is None}
    for key, row in store.tasks.items():
        if row.state is NodeState.QUEUED:
            owned = (key in store.ready) + (key in store.leases)
            assert owned == 1 or (suspended and owned == 0), f"{key} has {owned} ready rows and leases"
        elif row.state is NodeState.WAITING:
            assert key.index == GROUP or key in timers | waits or _elsewhere(run, row), f"{key} waits for nothing"
        else:
            assert key not in store.ready, f"{key} is ready and {row.state}"
            assert key not in store.leases, f"{key} is leased and {row.state}"
            assert key not in timers | waits, f"{key} has a timer or wait and is {row.state}"
    alive = store.ready or store.leases or store.timers or store.waits
    elsewhere = any(row.state is NodeState.WAITING for row in store.tasks.values())
    chained = any(row.node.endswith(UNDO) and row.state is NodeState.PENDING for row in store.tasks.values())
    assert alive or suspended or elsewhere or chained or store.left, "an unfinished run waits for nothing"
    for timer in store.timers.values():
        frozen = suspended and timer.kind.value != "start"
        assert (timer.fire_at == FROZEN) == frozen, f"{timer} of a run that is {run.status}"


def _elsewhere(run: RunRow, row: TaskRow) -> bool:
    """Whether what the row waits for stands in another run: its child, or the mailbox of an ancestor."""
    child = row.detail.child if row.detail is not None else None
    return child is not None or (row.kind == "waitForEvent" and run.mailbox_id not in (None, run.id))
