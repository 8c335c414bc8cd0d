"""Lone transitions leave what the usual transactions leave, and what is remembered of a run is what is stored of it.

Random definitions are played twice on a real database, one happening at a time, in an order that is drawn from the same
seed: once with a memory, and once without. Ids and times apart all tables are equal.
"""

from __future__ import annotations

import re
from dataclasses import fields
from random import Random
from typing import Any, Final, TypeAlias
from uuid import UUID

import asyncpg
import pytest

from partita.domain.errors import InvalidError
from partita.domain.payload import Json
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import CancelRequested, Event, ResumeRequested, SuspendRequested
from partita.domain.state.rows import ErrorInfo, RunRow, TaskRow, TimerKind
from partita.engine import ClaimedTask
from partita.engine.memory import Memory, Remembered
from partita.settings import Settings
from partita.store import slices
from partita.store.fences import EndedLease
from partita.store.slices import TaskRequest
from tests.engine.support import NAMESPACE, OFFER, claim, connected, done, opened, signal
from tests.engine.test_direct import Lone, one
from tests.property.generator import generate
from tests.property.happenings import INPUT

Connection: TypeAlias = "asyncpg.Connection[Any]"
Rows: TypeAlias = "dict[str, list[str]]"
STEPS: Final = 60
LEFT_OUT: Final = {
    "workflow_runs": "created_at started_at finished_at deadline_at deadline_remaining_ms start_request_id",
    "task_instances": "queued_at first_failed_at finished_at ready_seq",
    "run_history": "at started_at",
    "workflow_events": "created_at consumed_at",
    "waits": "since",
    "timers": "fire_at remaining_ms",
    "task_leases": "lease_id claim_id claimed_at deadline_at",
    "ready_tasks": "seq enqueued_at expires_at",
    "open_runs": "",
    "run_endings": "finished_at",
    "run_labels": "",
    "run_inbox": "id due_at",
}
"""The columns that differ, by table."""
VARYING: Final = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)"
    r'|(?<=retryInMs": )\d+|(?<=since": )\d+'
)
LEASES: Final = "SELECT run_id, node, index, lease_id, generation, worker_id, claimed_at FROM partita.task_leases"
TIMERS: Final = (
    "SELECT run_id, kind, node, index FROM partita.timers WHERE remaining_ms IS NULL ORDER BY node, index, kind"
)
WAITS: Final = "SELECT run_id, name FROM partita.waits ORDER BY name, node, index"
DUE: Final = "UPDATE partita.timers SET fire_at = clock_timestamp() WHERE kind = $1 AND node = $2 AND index = $3"
VERSION: Final = "SELECT ctid, xmin::text::bigint FROM partita.workflow_runs WHERE id = $1"
OUTPUTS: Final[tuple[Json, ...]] = (
    None, {}, [], "", False, 0, -0.0, 1e300, 2**63 - 1, {"a": {"b": [None, {"ü": "\u2028\U0001f600\\u0000 \"'"}]}},
    {"null": None, "list": list(range(50))}, "x" * 20_000, "ä" * 40_000,
)  # fmt: skip  # a value a line says no more


def lone_spec(random: Random) -> Json:
    """A tree of tasks, with what may stand between them; no node waits for two."""
    names = [f"n{number}" for number in range(random.randint(3, 8))]
    return {
        "nodes": [_node(random, names, at) for at in range(len(names))],
        "output": {"is": f"${{nodes.{names[0]}.output}}"},
    }


def _node(random: Random, names: list[str], at: int) -> Json:
    node: dict[str, Json] = {"name": names[at]}
    if at:
        before = random.choice(names[max(0, at - 2) : at])
        node["dependsOn"] = [before]
        node["input" if random.random() < 0.5 else "description"] = {"of": f"${{nodes.{before}.output}}"}
    if isinstance(node.get("description"), dict):
        del node["description"]
    if at and random.random() < 0.2:
        node.pop("input", None)
        return node | {"compute": {"v": f"${{nodes.{node['dependsOn'][0]}.output}}"}}
    if random.random() < 0.2:
        node["when"] = f"${{input.{random.choice(['yes', 'no'])}}}"
    node["task"] = {"type": "noop"}
    if random.random() < 0.3:
        node["retry"] = [{"maxRetries": 2, "initialDelay": "1s", "jitter": 0}]
    if random.random() < 0.2:
        node["onFailure"] = "continue"
    return node


class Play:
    """One run of an engine that works alone."""

    def __init__(self, lone: Lone, other: Connection, seed: int) -> None:
        self.lone, self.other = lone, other
        self.random = Random(seed)  # noqa: S311  # a repeatable order, no secret
        self.held: dict[tuple[str, int], ClaimedTask] = {}
        self.signals = 0
        self.compared = 0

    async def run(self) -> None:
        """Start it, and let things happen to it."""
        run_id = (await self.lone.engine.start(one(input=INPUT))).run_id
        for _ in range(STEPS):
            await self.look()
            await self.compare()
            move = await self.choose()
            if move is None:
                return
            await self.make(run_id, *move)

    async def look(self) -> None:
        """Take what is ready."""
        for task in [*self.lone.hands.kept, *await claim(self.other)]:
            self.held[task.node, task.index] = task
        self.lone.hands.kept.clear()
        leases = await self.other.fetch(LEASES)
        self.held = {key: task for key, task in self.held.items() if task.lease_id in {row[3] for row in leases}}
        for run_id, *lease in leases:  # as if this process had handed all of them out
            if (known := self.lone.memory._runs.get(run_id)) is not None:
                known.leases[run_id, lease[0], lease[1], lease[2]] = EndedLease(*lease[3:])

    async def choose(self) -> tuple[str, Any] | None:
        """What happens next: mostly reports."""
        moves: list[tuple[str, Any]] = [("report", key) for key in sorted(self.held)] * 4
        moves += [("timer", tuple(row)) for row in await self.other.fetch(TIMERS)]
        moves += [("signal", row[1]) for row in await self.other.fetch(WAITS)] * 2
        if moves and self.random.randrange(15) == 0:
            events = [SuspendRequested(), ResumeRequested(), ResumeRequested(), CancelRequested()]
            return "control", self.random.choice(events)
        return self.random.choice(moves) if moves else None

    async def make(self, run_id: UUID, kind: str, what: Any) -> None:
        """Let it happen."""
        match kind:
            case "report":
                await self.report(self.held.pop(what))
            case "timer":
                _, timer, node, index = what
                await self.other.execute(DUE, timer, node, index)
                await self.lone.engine.coordinator.timer_due(run_id, TimerKey(TimerKind(timer), node, index))
            case "signal":
                self.signals += 1
                await self.apply(run_id, signal(f"s{self.signals}", what, self.signals))
            case _:
                await self.apply(run_id, what)

    async def apply(self, run_id: UUID, event: Event) -> None:
        """Something that nothing fences."""
        await self.lone.engine.apply(run_id, event)

    async def report(self, task: ClaimedTask) -> None:
        """An attempt ends, mostly well."""
        drawn, report = self.random.randrange(12), done(task, self.random.choice(OUTPUTS))
        if drawn == 0:
            report = done(task, handed_back=True)
        elif drawn == 1:
            report = done(task, output=None, error=ErrorInfo("boom", "failed"))
        reply = await self.lone.engine.report(report, OFFER)
        if reply.next is not None:
            self.held[reply.next.node, reply.next.index] = reply.next

    async def compare(self) -> None:
        """What is remembered is what would be read."""
        for run_id, known in self.lone.memory._runs.items():
            if known.row[::2] == await self.version(run_id):
                await compare(self.lone, known)
                self.compared += 1

    async def version(self, run_id: UUID) -> tuple[bytes, int]:
        """Of a run's row, as it is remembered."""
        row = await self.other.fetchrow(VERSION, run_id)
        assert row is not None
        (block, offset), xid = row
        return block.to_bytes(4) + offset.to_bytes(2), xid


async def compare(lone: Lone, known: Remembered) -> None:
    """A slice that is remembered, and what would be read."""
    slice_, run_id, sql = known.slice, known.row.run_id, lone.engine.database.sql
    async with lone._transactor._connection.transaction() as connection:
        stored = (await slices.load_runs(connection, sql, [run_id])).runs[run_id].row
        keys = [task.key for _, task in await slices.load_whole_runs(connection, sql, [run_id])]
        wanted = [TaskRequest(run_id, *key, payload=True) for key in keys]
        tasks = {task.key: task for _, task in await slices.load_tasks(connection, sql, wanted)} if wanted else {}
        input_, output = (await slices.load_inputs(connection, sql, [run_id]))[run_id]
    same(RunRow, slice_.run, stored)
    for key, task in slice_.tasks.items():
        same(TaskRow, task, tasks[key], documents=key in slice_.outputs)
        assert getattr(task, "place", None) in (None, getattr(tasks[key], "place", None))
    assert not (slice_.absent - slice_.tasks.keys()) & tasks.keys()
    assert not slice_.whole or slice_.tasks.keys() == tasks.keys()
    assert slice_.input is None or (slice_.input.text, None) == (input_.text, output)


def same(kind: type, first: Any, second: Any, *, documents: bool = True) -> None:
    """Two rows, field by field; documents that were not asked for may lack."""
    for field in fields(kind):
        left, right = getattr(first, field.name), getattr(second, field.name)
        if field.name in ("input", "output", "event"):
            left, right = (None if document is None else document.text for document in (left, right))
            if left is None and not documents:
                continue
        assert left == right, (field.name, first, second)


async def rows(connection: Connection) -> Rows:
    """What all tables hold, without ids and times."""
    found = {}
    for table, columns in LEFT_OUT.items():
        text = f"SELECT (to_jsonb(row) - $1::text[])::text FROM partita.{table} AS row"  # noqa: S608  # of this file
        found[table] = sorted(VARYING.sub("(…)", row[0]) for row in await connection.fetch(text, columns.split()))
    return found


async def played(settings: Settings, spec: Json, seed: int) -> tuple[Rows, int, int]:
    """What a definition leaves; how much was done by one statement, how often what is remembered was compared."""
    async with connected(settings) as other, opened(settings) as engine:
        lone = Lone(engine)
        await engine.deploy(NAMESPACE, "order", {"nodes": [{"name": "warm", "task": {"type": "noop"}}]})
        await lone.finish(await lone.start())
        await other.execute(f"TRUNCATE {', '.join(f'partita.{table}' for table in LEFT_OUT)}")
        lone.hands.kept.clear()
        await engine.deploy(NAMESPACE, "order", spec)
        play, before = Play(lone, other, seed), lone.direct
        await play.run()
        return await rows(other), lone.direct - before, play.compared


async def agree(settings: Settings, monkeypatch: pytest.MonkeyPatch, spec: Json, seed: int) -> tuple[int, int]:
    """Both ways leave the same; how much was done by one statement and compared."""
    remembering, statements, compared = await played(settings, spec, seed)
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "state", lambda *_: None)
        usual, none, _ = await played(settings, spec, seed)
    for table in LEFT_OUT:
        assert remembering[table] == usual[table], table
    assert none == 0
    return statements, compared


@pytest.mark.parametrize("first", range(0, 9, 3))
async def test_trees_of_tasks(direct: Settings, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    found = [
        await agree(direct, monkeypatch, lone_spec(Random(seed)), seed)  # noqa: S311  # as above
        for seed in range(first, first + 3)
    ]
    assert sum(statements for statements, _ in found) >= 3
    assert sum(compared for _, compared in found) >= 3


@pytest.mark.parametrize("features", ["plain", "racing", "finally ends", "events racing", "undo finally ends"])
async def test_the_whole_language(direct: Settings, monkeypatch: pytest.MonkeyPatch, features: str) -> None:
    agreed = seed = 0
    while agreed < 3:
        try:
            await agree(direct, monkeypatch, generate(seed, frozenset(features.split())).spec, seed)
            agreed += 1
        except InvalidError:
            pass  # what the parser refuses is no definition
        seed += 1
