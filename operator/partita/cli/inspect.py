"""Reading one run, or one node of it, for the database backend.

Invariant: what is read is bounded: nodes of the definition, a few children a node, one page of items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from partita.cli.backend import AttemptLine, ItemLine, NodeDetail, NodeQuery, RunDetail
from partita.cli.items import item_index, keys_of
from partita.cli.queued import waiting_for_worker
from partita.cli.shown import (
    children_by_node,
    error_json,
    node_lines,
    node_summary,
    run_line,
    waits_of,
)
from partita.domain.errors import NotFoundError
from partita.domain.model import Definition
from partita.domain.nearest import did_you_mean
from partita.domain.payload import Json, Payload
from partita.domain.state.rows import GROUP, TERMINAL, UNDO, RunStatus, is_undo
from partita.engine.engine import Engine
from partita.engine.projection import NodeSummary
from partita.kube.words import loop_progress, node_message
from partita.store import lists, particulars, reads, trees, views

_CHILDREN: Final = 100
"""Children that are looked through for what stands below the nodes: the newest, and the newest unfinished ones."""
_OPEN: Final = tuple(status for status in RunStatus if status not in TERMINAL)


async def flow_of(engine: Engine, detail: views.RunDetailView) -> Definition:
    """What a run executes: its version of the definition, or a subflow of that."""
    run = detail.run
    version = await engine.resolve(run.namespace, run.definition, run.version)
    return version.definition.flow(run.subflow)


async def read_run(engine: Engine, run_id: UUID) -> RunDetail:
    """A run with every node, and the children below the nodes that started them."""
    detail = await reads.get_run(engine.database, run_id)
    flow, waits = await flow_of(engine, detail), waits_of(detail)
    nodes = [node_summary(node) for node in detail.nodes]
    if any(is_undo(node.name) for node in nodes):
        nodes = await _with_undo(engine, run_id, nodes)
    line = run_line(detail.run, waits, nodes)
    if not line.waiting:
        line = replace(line, waiting=waiting_for_worker(detail.run.status, detail.nodes))
    children = children_by_node(await _children(engine, detail), flow)
    output = detail.run.output.value if detail.run.output is not None else None
    return RunDetail(
        run=line,
        nodes=node_lines(nodes, waits, flow, children),
        output=output,
        error=error_json(detail.run.error),
        events=tuple(dict.fromkeys(wait.name for wait in detail.waits)),
    )


async def _with_undo(engine: Engine, run_id: UUID, nodes: Sequence[NodeSummary]) -> list[NodeSummary]:
    """With what reverses the items of a loop as one node, like the loop."""
    undone = await particulars.undone(engine.database, run_id)
    return [
        replace(node, state=undo.state.value, loop=undo.progress)
        if (undo := undone.get(node.name)) is not None and undo.progress.total > 1
        else node
        for node in nodes
    ]


async def _children(engine: Engine, detail: views.RunDetailView) -> list[views.RunView]:
    if not any(node.kind == "workflow" for node in detail.nodes):
        return []
    mine = views.RunFilter(parent=detail.run.id)
    newest = await lists.list_runs(engine.database, mine, limit=_CHILDREN)
    unfinished = await lists.list_runs(engine.database, replace(mine, statuses=_OPEN), limit=_CHILDREN)
    return [*{run.id: run for run in (*newest.runs, *unfinished.runs)}.values()]


async def read_node(engine: Engine, run_id: UUID, query: NodeQuery) -> NodeDetail:
    """A node with a page of its items and its newest attempts, or one of its items."""
    detail = await reads.get_run(engine.database, run_id)
    first = await _first_row(engine, detail, query)
    whole = query.name.removesuffix(UNDO)
    group = next((node for node in detail.nodes if node.node == whole and node.index == GROUP), None)
    keys, index = keys_of(group), None
    if query.item is not None:
        index = item_index(str(run_id), query.name, query.item, group)
    row = first if index is None else await _item(engine, run_id, query, index)
    rows = await _page(engine, run_id, query) if group is not None and index is None else ()
    attempts = await particulars.attempts(engine.database, run_id, query.name, index=index, limit=query.limit)
    return NodeDetail(
        run=str(run_id),
        name=query.name,
        index=index,
        key=_key(keys, index),
        kind=row.kind,
        state=row.state,
        attempt=row.attempt,
        queue=row.queue,
        worker=row.worker,
        message=node_message(node_summary(row), waits_of(detail) if index is None else ()),
        progress=loop_progress(row.loop) if row.loop is not None else "",
        child=str(row.child or ""),
        input=_value(row.input),
        output=await _output(engine, run_id, query, row),
        event=_value(row.event),
        error=error_json(row.error),
        items=tuple(_item_line(item, keys) for item in rows[: query.limit]),
        attempts=tuple(_attempt_line(attempt) for attempt in attempts),
        cursor=rows[query.limit - 1].index if len(rows) > query.limit else None,
    )


async def _first_row(engine: Engine, detail: views.RunDetailView, query: NodeQuery) -> views.NodeView:
    """The node's own row; one that nothing has happened to is made up. Raises NotFoundError."""
    found = next((node for node in detail.nodes if node.node == query.name), None)
    if found is not None:
        return found
    flow = await flow_of(engine, detail)
    known = {**flow.nodes, **(flow.finally_.nodes if flow.finally_ is not None else {})}
    if query.name not in known:
        words = f"run {detail.run.id}: has no node {query.name}{did_you_mean(query.name, known)}"
        raise NotFoundError(words, hint=f"partita get {detail.run.id}")
    return views.NodeView(
        node=query.name,
        index=0,
        kind=known[query.name].kind.value,
        state="Pending",
        attempt=0,
        queue="",
        worker="",
        queued_at=None,
        claimed_at=None,
        finished_at=None,
        input=None,
        output=None,
        error=None,
        event=None,
    )


async def _item(engine: Engine, run_id: UUID, query: NodeQuery, index: int) -> views.NodeView:
    rows = await trees.items(engine.database, run_id, query.name, after=index - 1, limit=1)
    if not rows or rows[0].index != index:
        words = f"run {run_id}: {query.name}: item {query.item} has not begun"
        raise NotFoundError(words, hint=f"partita get {run_id} --node {query.name}")
    return rows[0]


async def _page(engine: Engine, run_id: UUID, query: NodeQuery) -> tuple[views.NodeView, ...]:
    """Items after the one that was named, one more than is shown."""
    return await trees.items(engine.database, run_id, query.name, after=query.after, limit=query.limit + 1)


async def _output(engine: Engine, run_id: UUID, query: NodeQuery, row: views.NodeView) -> Json:
    if row.index == GROUP:
        return _value(await trees.loop_output(engine.database, run_id, query.name))
    return _value(row.output)


def _key(keys: Sequence[str], index: int | None) -> str:
    return keys[index] if index is not None and index < len(keys) else ""


def _item_line(row: views.NodeView, keys: Sequence[str]) -> ItemLine:
    return ItemLine(
        key=_key(keys, row.index),
        index=row.index,
        state=row.state,
        attempt=row.attempt,
        message=node_message(node_summary(row), ()),
        child=str(row.child or ""),
    )


def _attempt_line(attempt: particulars.AttemptView) -> AttemptLine:
    return AttemptLine(
        index=attempt.index,
        attempt=attempt.attempt,
        outcome=attempt.outcome,
        worker=attempt.worker,
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        error=error_json(attempt.error),
    )


def _value(payload: Payload | None) -> Json:
    return payload.value if payload is not None else None
