"""docs/sizing.md counts the connections of an operator and of a worker, and the server sees no more of real ones."""

from __future__ import annotations

import ast
import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import pytest

from partita.settings import Settings
from tests.kube.operated import Namespace, Object, definition, operator_settings, run, task
from tests.kube.process import partita_process

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
SOURCE = ROOT / "operator" / "partita"
MINE = "connections-test"
ACTIVITY = """
SELECT application_name AS name, count(*) AS number FROM pg_stat_activity
WHERE datname = current_database() AND application_name <> $1 AND backend_type = 'client backend' GROUP BY 1
"""
ELSEWHERE = {"dead-letters", "coordinator-starts-N", "partita/migrate", "partita/removal", "partita/roles", "retention"}
"""Connections of commands, and of programs that start runs by the thousand."""
HANDED_ON = {"N", "partita/N"}
"""Names that a caller gives, who is looked at as well."""
OPENING = {"dedicated", "Dedicated", "Session", "ProjectionStore", "turn"}
"""What opens a connection of the name that it is given."""
RUNS_STARTED = 20
TASKS = """
from partita.worker import Tasks
app = Tasks()
app.task("few")(lambda: None)
"""
LOOP: Object = {
    **task("each", "few", input={}),
    "forEach": {"items": ["a", "b", "c"]},
}
CHILD: Object = {"name": "child", "dependsOn": ["each"], "workflow": {"subflow": "inner"}}


def rows() -> list[tuple[str, list[str], int]]:
    """The page's table: process, names, and how many connections these are together at most."""
    part = PAGE.split("<!-- connections -->\n")[1].split("<!-- end -->")[0].strip().splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part]
    return [(row[0], re.findall(r"`([^`]+)`", row[1]), int(row[2].split()[0])) for row in cells]


def general(name: str) -> str:
    """A name without the number of its lane."""
    return re.sub(r"(coordinator(?:-starts)?)-\d+$", r"\1-N", name)


def test_the_sums_are_those_of_the_table() -> None:
    sums: Counter[str] = Counter()
    for process, _, most in rows():
        sums[process] += most
    assert f"an operator takes at most **{sums['operator']}** and a worker at most **{sums['worker']}**" in PAGE
    assert re.search(rf"≥ {sums['operator']} . operators \+ {sums['worker']} . worker processes", PAGE)


def test_every_connection_that_the_code_opens_is_in_the_table() -> None:
    listed = {
        name.removeprefix("partita-operator/").removeprefix("partita-worker/") for _, ns, _ in rows() for name in ns
    }
    opened = {purpose for file in SOURCE.rglob("*.py") for purpose in purposes(ast.parse(file.read_text("utf-8")))}
    assert opened - listed - HANDED_ON == ELSEWHERE


def purposes(tree: ast.AST) -> set[str]:
    """What a module calls the connections that it opens for itself."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in OPENING:
            for argument in node.args:
                if isinstance(argument, ast.Constant | ast.JoinedStr):
                    text = ast.unparse(argument).strip("f'\"")
                    found.add(re.sub(r"\{.*\}", "N", text))
    return found


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


@asynccontextmanager
async def watched(url: str) -> AsyncIterator[Counter[str]]:
    """The most connections of each name at the same time, looked at all along."""
    most: Counter[str] = Counter()
    connection = await asyncpg.connect(url, server_settings={"application_name": MINE})

    async def look() -> None:
        while True:
            seen: Counter[str] = Counter()
            for row in await connection.fetch(ACTIVITY, MINE):
                seen[general(row["name"])] += row["number"]
            most.update(seen - most)  # then it is the larger of both
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(look())
    try:
        yield most
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        await connection.close()


async def test_real_processes_keep_to_the_table(here: Namespace, direct: Settings, tmp_path: Path) -> None:
    """An operator and a worker with runs that have loops and children, from their start to their end."""
    (tmp_path / "few_tasks.py").write_text(TASKS)
    settings = operator_settings(direct, here.name)
    async with watched(direct.database.url) as most:
        environment = {"KUBECONFIG": str(here.cluster.kubeconfig), "PYTHONPATH": str(tmp_path)}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value, prepend=":" if name == "PYTHONPATH" else None)
            with partita_process(settings, "operator"), partita_process(settings, "worker", "few_tasks:app"):
                await here.create(definition("both", [LOOP, CHILD], subflows=[{"name": "inner", "nodes": [LOOP]}]))
                await here.accepted("both")
                for number in range(RUNS_STARTED):
                    await here.create(run(f"run-{number}", "both"))
                for number in range(RUNS_STARTED):
                    await here.phase(f"run-{number}", "Succeeded")
    allowed: Counter[str] = Counter()
    for _, names, number in rows():
        allowed.update(dict.fromkeys(names, number))
    assert most - allowed == Counter()
    always = ("operator", "operator-status", "definitions", "coordinator-N")
    assert {f"partita-operator/{name}" for name in always} <= most.keys()
    assert {"partita-worker/worker", "partita-worker/listen", "partita-worker/coordinator-N"} <= most.keys()
