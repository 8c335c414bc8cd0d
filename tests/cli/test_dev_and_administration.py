"""Workflows without a cluster, and the commands about the database itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.cli.exits import Exit
from tests.cli.commands import Cli

ROOT = Path(__file__).parents[2]
ORDER = str(ROOT / "examples" / "order.yaml")


def test_dev_runs_the_example_to_its_end(partita: Cli, database_url: str) -> None:
    done = partita("dev", "run", ORDER, "--event", 'approval={"by":"me"}', "--database-url", database_url, "-o", "json")
    assert done.code == Exit.OK, done.err
    (detail,) = done.json
    assert detail["run"]["phase"] == "Succeeded"
    assert detail["output"]["carrier"] == "courier"
    assert detail["output"]["confirmation"].endswith("/courier/me")
    assert {node["name"]: node["state"] for node in detail["nodes"]}["parcel"] == "Skipped"


def test_dev_exits_1_when_the_run_fails(partita: Cli, database_url: str, tmp_path: Path) -> None:
    text = Path(ORDER).read_text().replace("amount: 1200", "amount: 200000").replace("maxRetries: 3", "maxRetries: 0")
    (tmp_path / "order.yaml").write_text(text)
    (tmp_path / "tasks.py").write_text("from examples.tasks import app\n")
    done = partita("dev", "run", str(tmp_path / "order.yaml"), "--database-url", database_url, "-o", "json")
    assert done.code == Exit.RUN_FAILED, done.err
    assert done.json[0]["error"]["type"] == "card_declined"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--event", "approval"), "expected name=JSON"),
        (("--event", "approval={"), "is not JSON"),
        (("--tasks", "nowhere:app"), "nowhere"),
    ],
)
def test_dev_says_what_is_wrong_before_anything_starts(partita: Cli, words: tuple[str, ...], expected: str) -> None:
    refused = partita("dev", "run", ORDER, *words)
    assert refused.code == Exit.USAGE
    assert expected in refused.err


def test_dev_needs_tasks_and_a_run(partita: Cli, tmp_path: Path) -> None:
    definition, run = Path(ORDER).read_text().split("---\n")
    (tmp_path / "definition.yaml").write_text(definition)
    (tmp_path / "both.yaml").write_text(f"{definition}---\n{run}")
    assert "holds no WorkflowRun" in partita("dev", "run", str(tmp_path / "definition.yaml")).err
    assert "--tasks" in partita("dev", "run", str(tmp_path / "both.yaml")).err


def test_migrate_and_partitions(partita: Cli, empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITA_DATABASE_URL", empty_database_url)
    first = partita("migrate", "-o", "json").json
    assert [state["version"] for state in first["applied"]] == [1, 2, 3, 4]
    assert first["partitions"]
    assert partita("migrate", "-o", "json").json == {"applied": [], "partitions": [], "roles": []}
    assert partita("partitions", "ensure", "-o", "json").json == {"made": []}
    status = partita("partitions", "status", "-o", "json")
    assert status.code == Exit.OK
    assert status.json["ahead"] == 3
    assert partita("partitions", "drop", "-o", "json").json["dropped"] == []
    assert "months ahead" in partita("partitions", "status").err
