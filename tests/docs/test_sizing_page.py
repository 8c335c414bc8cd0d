"""docs/sizing.md says how many rows a run leaves behind: counted after one with a loop, a child and a signal."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

from tests.cli.commands import Cli
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "sizing.md").read_text("utf-8")
TASKS = """
from partita.worker import TaskContext, Tasks

app = Tasks()

@app.task("twice")
def twice(ctx: TaskContext) -> int:
    if ctx.attempt == 1:
        raise ValueError("again")
    return 1

@app.task("once")
def once(**_: object) -> int:
    return 1
"""
MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: rows}
spec:
  subflows: [{name: inner, nodes: [{name: deep, task: {type: once}}]}]
  nodes:
    - {name: first, task: {type: twice}, retry: [{maxRetries: 1, initialDelay: 1ms}]}
    - {name: each, dependsOn: [first], forEach: {items: [1, 2, 3]}, task: {type: once}}
    - {name: child, dependsOn: [each], workflow: {subflow: inner}}
    - {name: answer, dependsOn: [child], waitForEvent: {}}
    - {name: skipped, dependsOn: [answer], when: "${false}", task: {type: once}}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: rows-1}
spec: {definitionRef: {name: rows}, tags: [red, blue], attributes: {team: a}}
"""
LEFT = {
    "workflow_runs": 2,
    "run_endings": 1,
    "task_instances": 9,  # first, each and its three items, child, its node, answer, skipped
    "run_history": 11,  # six attempts, three of the child, the signal, the skipped node
    "workflow_events": 1,
    "run_labels": 3,
}
"""Rows by the page's rules, of a run and its child."""
TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'partita'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""
BASICS = {"schema_migrations", "engine_state", "workflow_definitions", "workers"}


def listed() -> list[str]:
    """The tables that the page names."""
    part = PAGE.split("<!-- rows -->\n")[1].split("<!-- end -->")[0]
    return re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)


async def counts(url: str) -> dict[str, int]:
    """Rows of every table that has some."""
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch(TABLES)
        found = {name: await connection.fetchval(f"SELECT count(*) FROM partita.{name}") for (name,) in tables}  # noqa: S608  # names of the catalogue
    finally:
        await connection.close()
    return {name: number for name, number in found.items() if number and name not in BASICS}


def test_the_rows_of_a_run(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "row_tasks.py").write_text(TASKS)
    (tmp_path / "rows.yaml").write_text(MANIFEST)
    monkeypatch.syspath_prepend(tmp_path)
    words = ("--tasks", "row_tasks:app", "--database-url", database_url, "--event", "answer={}")
    done = Cli(monkeypatch, capsys)("dev", "run", str(tmp_path / "rows.yaml"), *words)
    assert done.code == 0, done.out + done.err
    assert asyncio.run(counts(database_url)) == LEFT
    assert set(listed()) == set(LEFT)
