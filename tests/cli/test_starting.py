"""What stops a process or a local run before it starts is one line with its own exit code, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.cli.exits import Exit, partita_error
from partita.domain.errors import ConflictError
from tests.cli.commands import Cli

ORDER = Path(__file__).parents[2] / "examples" / "order.yaml"


def test_errors_of_tasks_that_ended_together_are_found() -> None:
    error = ConflictError("x: taken")
    assert partita_error(ExceptionGroup("outer", [ExceptionGroup("inner", [error])])) is error
    assert partita_error(ExceptionGroup("outer", [error, ValueError("defect")])) is None


def test_dev_refuses_bad_input_in_one_line(partita: Cli, database_url: str, tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text(ORDER.read_text().replace("amount: 1200", "amount: many"))
    (tmp_path / "tasks.py").write_text("from examples.tasks import app\n")
    refused = partita("dev", "run", str(tmp_path / "order.yaml"), "--database-url", database_url)
    assert refused.code == Exit.USAGE
    assert refused.err.startswith("error: ")
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("words", [("worker", "examples.tasks:app"), ("operator",)])
def test_processes_need_a_database(partita: Cli, words: tuple[str, ...]) -> None:
    refused = partita(*words)
    assert refused.code == Exit.USAGE
    assert "PARTITA_DATABASE_URL" in refused.err


def test_the_operator_needs_credentials_of_a_cluster(partita: Cli) -> None:
    refused = partita("operator", "--database-url", "postgresql://127.0.0.1:1/x")
    assert refused.code == Exit.UNAVAILABLE
    assert "kubernetes: credentials" in refused.err


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("examples.tasks", "try: partita worker examples.tasks:app"),
        ("examples/tasks.py", "is a file; expected a module, such as examples.tasks:app"),
        ("tasks.py:app", "is a file"),
    ],
)
def test_a_worker_says_how_its_tasks_are_named(partita: Cli, target: str, expected: str) -> None:
    refused = partita("worker", target, "--database-url", "postgresql://127.0.0.1:1/x")
    assert refused.code == Exit.USAGE
    assert expected in refused.err


def test_the_version_is_printed(partita: Cli) -> None:
    shown = partita("--version")
    assert (shown.code, shown.out.split()[0]) == (Exit.OK, "partita")


def test_dev_does_not_wait_for_a_worker_that_cannot_come(partita: Cli, database_url: str, tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text(ORDER.read_text().replace("type: charge-card", "type: charge-crad"))
    (tmp_path / "tasks.py").write_text("from examples.tasks import app\n")
    done = partita("dev", "run", str(tmp_path / "order.yaml"), "--database-url", database_url, "-o", "json")
    assert done.code == Exit.RUN_FAILED, done.err
    assert done.json[0]["error"]["type"] == "unknown_task_type"
    assert {node["name"]: node["attempt"] for node in done.json[0]["nodes"]}["charge"] <= 4
