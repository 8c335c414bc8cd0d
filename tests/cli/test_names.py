"""Names that cannot be meant are refused before anything is asked of a backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.cli import connect, names
from partita.cli.exits import Exit
from partita.domain.errors import InvalidError
from partita.store import reads
from partita.store.database import Database
from tests.cli.commands import Cli

ORDER = Path(__file__).parents[2] / "examples" / "order.yaml"
LONG = "x" * 5_000
RUN_COMMANDS = [("get",), ("watch",), ("wait",), ("suspend",), ("resume",), ("cancel",), ("history",)]


@pytest.fixture
def nowhere(partita: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A command line for which opening a backend is a defect."""

    def opened(_: object) -> None:
        raise AssertionError("a backend was asked")

    monkeypatch.setattr(connect, "settings_for", opened)
    return partita


@pytest.mark.parametrize("command", RUN_COMMANDS)
@pytest.mark.parametrize("run", ["", " ", "A", "a/b", "../b", "a\nb", LONG])
def test_a_run_is_named_by_an_id_or_by_an_objects_name(nowhere: Cli, command: tuple[str, ...], run: str) -> None:
    refused = nowhere(*command, run)
    assert refused.code == Exit.USAGE, refused.err
    assert refused.err.startswith("error: RUN: ")
    assert len(refused.err) < 300


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("signal", "", "go"), "RUN: is empty; expected a run's id or its object's name"),
        (("signal", "r", ""), "EVENT: is empty"),
        (("signal", "r", LONG), "EVENT: has 5,000 characters; expected at most 63"),
        (("signal", "r", "a\nb"), "EVENT: 'a\\nb' does not fit"),
        (("signal", "r", "go", "--id", ""), "--id: is empty"),
        (("signal", "r", "go", "--id", LONG), "--id: has 5,000 characters; expected at most 63"),
        (("signal", "r", "go", "--id", "a b"), "--id: 'a b' does not fit"),
        (("cancel", "r", "--reason", LONG), "--reason: has 5,000 characters; expected at most 1,024"),
        (("get", "r", "-n", "A/b"), "--namespace: 'A/b' does not fit"),
        (("list", "-n", LONG), "--namespace: has 5,000 characters; expected at most 63"),
        (("list", "--definition", ""), "--definition: is empty"),
        (("list", "--definition", "a,status.phase=b"), "--definition: 'a,status.phase=b' does not fit"),
        (("list", "--tag", ""), "--tag: is empty"),
        (("definitions", "-n", "*"), "--namespace: '*' does not fit"),
        (("worker", "m:app", "--queue", ""), "--queue: is empty"),
        (("worker", "m:app", "-n", ""), "--namespace: is empty"),
    ],
)
def test_what_does_not_fit_is_said(nowhere: Cli, words: tuple[str, ...], about: str) -> None:
    refused = nowhere(*words)
    assert refused.code == Exit.USAGE, refused.err
    assert about in refused.err
    assert len(refused.err) < 300


def test_the_events_of_dev_have_names_that_fit(partita: Cli) -> None:
    file = str(Path(__file__).parents[2] / "examples" / "order.yaml")
    refused = partita("dev", "run", file, "--event", f"{LONG}=1")
    assert refused.code == Exit.USAGE
    assert "--event: has 5,000 characters" in refused.err


@pytest.mark.parametrize("field", ["{name: A}", "{name: a, namespace: b/c}", f"{{name: {LONG}}}", "{name: 'a b'}"])
def test_names_of_manifests_are_those_that_the_api_server_takes(partita: Cli, field: str, tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(
        f"apiVersion: partita.dev/v1alpha1\nkind: WorkflowDefinition\nmetadata: {field}\n"
        "spec: {nodes: [{name: a, compute: {x: 1}}]}\n"
    )
    checked = partita("lint", str(file), "-o", "json")
    assert checked.code == Exit.USAGE
    assert next(problem["path"] for problem in checked.json[0]["problems"]).startswith("metadata.name")
    assert len(checked.out) < 1_000


@pytest.mark.parametrize("target", ["", ":", ":app", ".a:app", "a..b", "a b:app"])
def test_a_worker_needs_the_name_of_a_module(partita: Cli, target: str) -> None:
    refused = partita("worker", target, "--database-url", "postgresql://127.0.0.1:1/x")
    assert refused.code == Exit.USAGE
    assert "is no name of a module; expected module:attribute" in refused.err


MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: waits}
spec: {nodes: [{name: ask, waitForEvent: {}}]}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {%s: r1}
spec: {definitionRef: {name: waits}}
"""


def test_a_submitted_run_has_its_name_and_the_newest_unfinished_one_is_found(on_database: Cli, tmp_path: Path) -> None:
    file = tmp_path / "waits.yaml"
    file.write_text(MANIFEST % "name")
    first, second = (on_database("submit", str(file), "-o", "json").json[1]["id"] for _ in range(2))
    assert (
        on_database("get", "r1", "-o", "json").json["run"] | {"id": second, "name": "r1"}
        == (on_database("get", second, "-o", "json").json["run"])
    )
    assert on_database("cancel", "r1").code == Exit.OK
    assert on_database("get", "r1", "-o", "json").json["run"]["id"] == first
    assert on_database("history", "r1", "-o", "json").json[0]["event"] == "RunStarted"


def test_runs_without_a_name_are_not_found_by_an_empty_one(on_database: Cli, tmp_path: Path) -> None:
    file = tmp_path / "waits.yaml"
    file.write_text(MANIFEST % "generateName")
    identity = on_database("submit", str(file), "-o", "json").json[1]["id"]
    assert on_database("cancel", "").code == Exit.USAGE
    assert on_database("get", identity, "-o", "json").json["run"]["phase"] == "Running"


async def test_the_store_itself_finds_no_run_by_an_empty_name(database: Database) -> None:
    with pytest.raises(InvalidError, match="name: is empty"):
        await reads.find_run(database, "default", "")


def test_hints_keep_the_namespace(on_database: Cli) -> None:
    on_database("submit", str(ORDER), "-n", "shop")
    late = on_database("wait", "order-1", "-n", "shop", "--timeout", "1ms")
    assert late.code == Exit.TIMEOUT, late.err
    assert "try: partita get order-1 -n shop" in late.err
    assert names.get_command("order-1", "default") == "partita get order-1"


def test_a_run_of_another_namespace_is_named(on_database: Cli) -> None:
    on_database("submit", str(ORDER), "-n", "shop")
    missed = on_database("get", "order-1")
    assert missed.code == Exit.NOT_FOUND
    assert "in namespace shop; try: partita get order-1 -n shop" in missed.err
    assert "try: partita list" in on_database("get", "order-1", "-n", "other").err
