"""Looking into the database: history, definitions, queues, workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.cli.exits import Exit
from tests.cli.commands import Cli

MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: ship}
spec:
  nodes:
    - {name: pack, task: {type: pack, queue: dock}}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: first}
spec: {definitionRef: {name: ship}}
"""


@pytest.fixture
def run_id(on_database: Cli, tmp_path: Path) -> str:
    """A run whose task nobody takes."""
    file = tmp_path / "ship.yaml"
    file.write_text(MANIFEST)
    done = on_database("submit", str(file), "-o", "json")
    assert done.code == Exit.OK, done.err
    return str(done.json[1]["id"])


def test_the_history_of_a_run(on_database: Cli, run_id: str) -> None:
    on_database("cancel", run_id, "--reason", "no longer wanted")
    lines = on_database("history", run_id, "-o", "json").json
    assert [line["seq"] for line in lines] == sorted(line["seq"] for line in lines)
    assert lines[0]["event"] == "RunStarted"
    assert [line["details"] for line in lines if isinstance(line["details"], str)] == []
    assert {"reason": "no longer wanted"}.items() <= next(
        line["details"] for line in lines if "Cancel" in line["event"] and line["details"]
    ).items()
    assert "no longer wanted" in on_database("history", run_id).out
    rest = on_database("history", run_id, "--after", str(lines[0]["seq"]), "-o", "json").json
    assert rest == lines[1:]
    page = on_database("history", run_id, "--limit", "1")
    assert f"more: --after {lines[0]['seq']}" in page.err


def test_the_history_of_nothing_is_not_found(on_database: Cli) -> None:
    assert on_database("history", "01890000-0000-7000-8000-000000000000").code == Exit.NOT_FOUND


def test_definitions(on_database: Cli, run_id: str) -> None:
    assert run_id
    (found,) = on_database("definitions", "-o", "json").json
    assert (found["namespace"], found["name"], found["version"], found["deployed"]) == ("default", "ship", 1, 1)
    assert "ship" in on_database("definitions").out
    assert on_database("definitions", "-n", "elsewhere", "-o", "json").json == []


def test_a_queue_that_nobody_serves_is_said(on_database: Cli, run_id: str) -> None:
    assert run_id
    (found,) = on_database("queues", "-o", "json").json
    assert (found["queue"], found["depth"], found["workers"]) == ("dock", 1, 0)
    shown = on_database("queues")
    assert "dock" in shown.out
    assert "no worker serves it" in shown.err


def test_no_workers(on_database: Cli) -> None:
    assert on_database("workers", "-o", "json").json == []
    assert "try: partita worker" in on_database("workers").err


@pytest.mark.parametrize("words", [("history", "x"), ("definitions",), ("queues",), ("workers",)])
def test_they_need_a_database(partita: Cli, words: tuple[str, ...]) -> None:
    refused = partita(*words)
    assert refused.code == Exit.USAGE
    assert "PARTITA_DATABASE_URL" in refused.err


def test_a_database_without_schema_says_how_to_make_it(
    partita: Cli, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTITA_DATABASE_URL", empty_database_url)
    refused = partita("queues")
    assert refused.code == Exit.UNAVAILABLE
    assert refused.err.rstrip().endswith("try: partita migrate")
