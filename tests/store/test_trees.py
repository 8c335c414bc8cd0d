"""Reads below a node on rows written directly, and what they do not read."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import orjson
import pytest

from partita.domain.errors import NotFoundError
from partita.domain.ids import make_id, to_milliseconds
from partita.domain.payload import Payload
from partita.domain.state.rows import Detail, Loop, NodeKey, Parent
from partita.minting import new_id
from partita.store import lists, reads, trees
from partita.store.database import Connection, Database
from partita.store.details import detail_of, detail_text
from partita.store.projection import ProjectionStore
from partita.store.views import RunFilter
from tests.store.records import insert, insert_run, open_run

ITEMS = 10_000
LARGE = (
    "INSERT INTO partita.task_instances (run_id, node, index, kind, state, detail, output)"
    " SELECT $1, 'each', index, 'workflow', CASE WHEN index < 0 THEN 'Waiting' ELSE 'Completed' END,"
    ' CASE WHEN index < 0 THEN \'{"loop": {"total": 10000, "born": 10000, "completed": 10000}}\'::json END, \'1\''
    " FROM generate_series(-1, 9999) AS index"
)


@pytest.mark.parametrize(
    "detail",
    [
        Detail(),
        Detail(loop=Loop(10, 5, 4, 3, 2, 1, "joined"), version=3),
        Detail(child=new_id(), order=9),
        Detail(collected=Payload.of(None), undo_next=NodeKey("seat~undo", 4)),
    ],
    ids=["empty", "loop", "child", "iteration"],
)
def test_a_detail_is_read_as_it_was_written(detail: Detail) -> None:
    assert detail_of(detail_text(detail)) == detail
    assert detail_of(None) is None


@pytest.fixture
async def run_id(database: Database) -> UUID:
    """An unfinished run with a large loop and two plain nodes."""
    run_id = make_id(to_milliseconds(await database.clock()), 7)
    await insert_run(database, run_id, status="Running", total=3)
    await open_run(database, run_id)
    await database.read(lambda connection: connection.execute(LARGE, run_id))
    for node in ("a", "z"):
        await insert(database, "task_instances", run_id=run_id, node=node, kind="compute", state="Completed")
    return run_id


async def test_a_loop_is_one_node_and_its_items_are_pages(database: Database, run_id: UUID) -> None:
    detail = await reads.get_run(database, run_id)
    assert sorted((node.node, node.index) for node in detail.nodes) == [("a", 0), ("each", -1), ("z", 0)]
    (loop,) = [node.loop for node in detail.nodes if node.loop is not None]
    assert (loop.total, loop.born, loop.completed, loop.failed) == (ITEMS, ITEMS, ITEMS, 0)
    page = await trees.items(database, run_id, "each", after=9_996, limit=100)
    assert [item.index for item in page] == [9_997, 9_998, 9_999]
    assert [item.index for item in await trees.items(database, run_id, "each", limit=2)] == [0, 1]
    with pytest.raises(NotFoundError, match="a: is no loop that has begun"):
        await trees.loop_output(database, run_id, "a")


@pytest.mark.parametrize("block", ["projection_nodes", "projection_waiting", "run_nodes", "waits_of_runs"])
async def test_a_status_reads_no_items(database: Database, run_id: UUID, block: str) -> None:
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {database.sql(block)}"
    more = {"projection_nodes": (20,)}.get(block, ())
    given = (run_id,) if block == "run_nodes" else ([run_id], run_id, run_id, *more)

    async def analysed(connection: Connection) -> str:
        await connection.execute("ANALYZE partita.task_instances")
        return str(await connection.fetchval(explain, *given))

    plan = orjson.loads(await database.read(analysed))
    nodes = [plan[0]["Plan"]]
    read = 0
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if "task_instances" in node.get("Relation Name", ""):
            read += round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
    assert 3 <= read < 20


async def test_the_output_so_far_has_the_shape_of_the_items(database: Database) -> None:
    run_id = make_id(to_milliseconds(await database.clock()), 8)
    await insert_run(database, run_id, status="Running")
    for node, items in (("list", [7, 8, 9]), ("map", {"b": 1, "a": 2})):
        group = {"kind": "task", "state": "Waiting", "input": orjson.dumps({"items": items}).decode()}
        await insert(database, "task_instances", run_id=run_id, node=node, index=-1, detail='{"loop": {}}', **group)
        await insert(
            database, "task_instances", run_id=run_id, node=node, index=1, kind="task", state="Completed", output='"x"'
        )
    assert await trees.loop_output(database, run_id, "list") == Payload.of([None, "x", None])
    assert await trees.loop_output(database, run_id, "map") == Payload.of({"a": None, "b": "x"})
    await insert(database, "task_instances", run_id=run_id, node="again", index=-1, kind="task", state="Waiting")
    assert await trees.loop_output(database, run_id, "again") is None
    for index in range(2):
        await insert(
            database, "task_instances", run_id=run_id, node="again", index=index, kind="task", state="Completed",
            output=str(index), detail=f'{{"collected": {index * 10}}}',
        )  # fmt: skip
    assert await trees.loop_output(database, run_id, "again") == Payload.of([0, 10])


async def family(database: Database) -> tuple[UUID, list[UUID]]:
    """A parent with a child by name and one of a subflow, all unfinished."""
    now = to_milliseconds(await database.clock())
    parent, named, hidden = (make_id(now + n, n) for n in range(3))
    await insert_run(database, parent, status="Running")
    kin = {"status": "Running", "parent_id": parent, "parent_node": "ship", "parent_index": 0, "parent_attempt": 1}
    await insert_run(database, named, **kin, depth=1)
    await insert_run(database, hidden, **kin, depth=1, subflow="pack", mailbox_id=parent)
    for run_id in (parent, named):
        await open_run(database, run_id)
    await insert(database, "open_runs", run_id=hidden, namespace="shop", definition="order", name="", subflow="pack")
    return parent, [named, hidden]


async def test_a_parents_list_has_all_children_and_others_no_subflow(database: Database) -> None:
    parent, (named, hidden) = await family(database)
    for query in (RunFilter(), RunFilter(namespace="shop")):
        assert {run.id for run in (await lists.list_runs(database, query)).runs} == {parent, named}
    page = await lists.list_runs(database, RunFilter(parent=parent), limit=1)
    assert [run.id for run in page.runs] == [hidden]
    assert (page.runs[0].parent, page.runs[0].subflow) == (Parent(parent, "ship", 0, 1), "pack")
    page = await lists.list_runs(database, RunFilter(parent=parent), limit=5, cursor=page.cursor)
    assert [run.id for run in page.runs] == [named]
    assert [run.id for run in await trees.children(database, parent)] == [named, hidden]
    assert [run.id for run in await trees.children(database, parent, after=named, limit=5)] == [hidden]


async def test_waits_that_an_owner_keeps_are_seen_by_both(database: Database) -> None:
    parent, (_, hidden) = await family(database)
    now: datetime = await database.clock()
    base = {"run_id": parent, "since": now, "index": 0, "node": "ask"}
    await insert(database, "waits", seq=1, name="mine", **base)
    await insert(database, "waits", seq=2, name="theirs", child_id=hidden, subflow="pack", **base)
    await insert(
        database, "task_instances", run_id=parent, node="ship", kind="workflow", state="Waiting",
        detail=f'{{"child": "{hidden}"}}',
    )  # fmt: skip
    assert [(wait.name, wait.child) for wait in (await reads.get_run(database, parent)).waits] == [
        ("mine", None),
        ("theirs", hidden),
    ]
    assert [(wait.name, wait.child) for wait in (await reads.get_run(database, hidden)).waits] == [("theirs", hidden)]
    waiting = (await reads.waiting(database, [parent]))[parent]
    assert {(one.kind, one.name, one.node) for one in waiting} == {
        ("signal", "mine", "ask"),
        ("signal", "theirs", "ask"),
        ("child", str(hidden), "ship"),
    }
    assert await reads.waiting(database, []) == {}
    store = ProjectionStore(database)
    rows = await store.statuses([parent], {}, output_bytes=10, nodes=20, signals=10, suspension_events=())
    await store.close()
    assert {(row["kind"], row["name"], row["child"]) for row in rows.waiting} == {
        ("signal", "mine", None),
        ("signal", "theirs", hidden),
        ("child", str(hidden), hidden),
    }
