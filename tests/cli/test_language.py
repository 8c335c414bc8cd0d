"""The whole language as the command line shows it: one run with loops, children, undo and finally."""

from __future__ import annotations

import getpass
import platform
from pathlib import Path
from typing import Any

import pytest

from partita.cli.exits import Exit
from tests.cli.commands import Cli

FILE = str(Path(__file__).with_name("language.yaml"))
EVENTS = ("--event", 'answer={"x": 1}', "--event", "go={}")
TASKS = ("--tasks", "tests.cli.language_tasks:app")


@pytest.fixture
def ended(on_database: Cli, database_url: str) -> dict[str, Any]:
    """The run of ``language.yaml`` at its end."""
    done = on_database("dev", "run", FILE, *EVENTS, *TASKS, "--database-url", database_url, "-o", "json")
    assert done.code == Exit.RUN_FAILED, done.err
    (detail,) = done.json
    return dict(detail)


def node(detail: dict[str, Any], name: str) -> dict[str, Any]:
    return next(dict(node) for node in detail["nodes"] if node["name"] == name)


def test_a_run_stage_by_stage(on_database: Cli, ended: dict[str, Any]) -> None:
    assert (ended["run"]["phase"], ended["run"]["stage"], ended["run"]["progress"]) == ("Failed", "finally", "6/6")
    assert ended["error"] == {"type": "refused", "message": "no more", "details": None}
    assert ended["run"]["message"].startswith("refused: no more; undo failed: poll~undo")
    assert [(each["name"], each["stage"], each["state"], each["message"]) for each in ended["nodes"]] == [
        ("reserve", "main", "Completed", ""),
        ("pack", "main", "Completed", "3/3"),
        ("poll", "main", "Completed", "3 iterations"),
        ("ship", "main", "Completed", ""),
        ("refuse", "main", "Failed", "refused: no more"),
        ("poll~undo", "undo", "Failed", "3/3 · 1 failed"),
        ("reserve~undo", "undo", "Completed", ""),
        ("audit", "finally", "Completed", ""),
    ]
    children = node(ended, "pack")["children"]
    assert [(child["index"], child["phase"]) for child in children] == [(n, "Succeeded") for n in range(3)]
    (ship,) = node(ended, "ship")["children"]
    assert (ship["index"], ship["phase"]) == (None, "Succeeded")
    lines = [line.split() for line in on_database("get", "one").out.splitlines()]
    assert ["└", "run", "[0]", children[0]["id"], "Succeeded"] in lines
    assert ["└", "run", ship["id"], "Succeeded"] in lines
    assert lines.index(["undo"]) < lines.index(["finally"])
    assert ["✘", "poll~undo", "Failed", "3/3", "·", "1", "failed"] in lines


def test_children_are_read_by_id_and_listed_below_their_parent_alone(on_database: Cli, ended: dict[str, Any]) -> None:
    (pack, ship) = (node(ended, name)["children"] for name in ("pack", "ship"))
    listed = on_database("list", "-o", "json").json["runs"]
    assert {run["definition"] for run in listed} == {"parcel", "shipping"}
    below = on_database("list", "--parent", "one", "-o", "json").json["runs"]
    assert {run["id"] for run in below} == {child["id"] for child in (*pack, *ship)}
    assert {run["definition"] for run in below} == {"parcel/packLine", "shipping"}
    first = on_database("list", "--parent", "one", "--limit", "3", "-o", "json").json
    rest = on_database("list", "--parent", "one", "--cursor", first["cursor"], "-o", "json").json
    assert [run["id"] for run in (*first["runs"], *rest["runs"])] == [run["id"] for run in below]
    child = on_database("get", pack[1]["id"], "-o", "json").json
    owner = child["run"]["id"]
    assert "try: partita signal " in on_database("signal", owner, "answer").err
    assert on_database("get", "one", "--node", "ship", "-o", "json").json["child"] == ship[0]["id"]
    assert (child["run"]["definition"], child["output"]) == ("parcel/packLine", {"line": 2})
    assert [each["name"] for each in child["nodes"]] == ["pick", "ask"]
    assert on_database("list", "--parent", pack[0]["id"]).err == "no runs fit; try: partita list, with fewer filters\n"


def test_one_node_with_its_items_and_attempts(on_database: Cli, ended: dict[str, Any]) -> None:
    pack = on_database("get", "one", "--node", "pack", "-o", "json").json
    assert (pack["kind"], pack["state"], pack["message"]) == ("workflow", "Completed", "3/3")
    assert pack["output"] == [{"line": 1}, {"line": 2}, {"line": 3}]
    assert [item["child"] for item in pack["items"]] == [child["id"] for child in node(ended, "pack")["children"]]
    page = on_database("get", "one", "--node", "poll", "--limit", "2", "-o", "json").json
    assert [item["index"] for item in page["items"]] == [0, 1]
    assert [(one["index"], one["outcome"]) for one in page["attempts"]] == [(2, "Completed"), (1, "Completed")]
    assert page["cursor"] == 1
    rest = on_database("get", "one", "--node", "poll", "--after", "1", "-o", "json").json
    assert ([item["index"] for item in rest["items"]], rest["cursor"]) == ([2], None)
    item = on_database("get", "one", "--node", "poll", "--item", "1", "-o", "json").json
    assert (item["input"], item["output"], item["index"]) == ({"i": 1}, {"echo": {"i": 1}}, 1)
    assert [attempt["index"] for attempt in item["attempts"]] == [1]
    shown = on_database("get", "one", "--node", "poll", "--limit", "2")
    assert "more items: --after 1" in shown.err
    assert 'output: {"echo":{"i":2}}' in shown.out


def test_what_reverses_a_node(on_database: Cli, ended: dict[str, Any]) -> None:
    assert ended
    undone = on_database("get", "one", "--node", "poll~undo", "-o", "json").json
    assert [(item["index"], item["state"]) for item in undone["items"]] == [
        (0, "Completed"), (1, "Failed"), (2, "Completed"),
    ]  # fmt: skip
    failed = on_database("get", "one", "--node", "poll~undo", "--item", "1", "-o", "json").json
    assert (failed["input"], failed["error"]["message"]) == ({"i": 1}, "not this one")
    shown = on_database("get", "one", "--node", "reserve~undo")
    assert 'input: {"id":1}' in shown.out


def test_the_history_names_stages_and_children(on_database: Cli, ended: dict[str, Any]) -> None:
    assert ended
    lines = on_database("history", "one", "-o", "json").json
    events = [line["event"] for line in lines]
    assert [event for event in events if event.endswith("Started") and event != "ChildStarted"] == [
        "RunStarted", "UndoStarted", "FinallyStarted",
    ]  # fmt: skip
    assert events.count("ChildStarted") == 4
    assert events.count("UndoFailed") == 1
    shown = [line.split() for line in on_database("history", "one").out.splitlines()]
    assert {line[4] for line in shown if line[3:4] == ["ChildStarted"]} == {"pack[0]", "pack[1]", "pack[2]", "ship"}


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--node", "pck"), Exit.NOT_FOUND, "has no node pck (did you mean 'pack'?)"),
        (("--node", "ship", "--item", "0"), Exit.USAGE, "ship is no loop"),
        (("--node", "pack", "--item", "3"), Exit.NOT_FOUND, "has 3 items, from 0; there is no item 3"),
        (("--node", "poll", "--item", "3"), Exit.NOT_FOUND, "item 3 has not begun"),
        (("--node", "pack", "--item", "x"), Exit.USAGE, "'x' is no item of pack; expected its number"),
        (("--node", "no name"), Exit.USAGE, "expected a node's name"),
        (("--item", "3"), Exit.USAGE, "--node"),
    ],
)
def test_what_is_not_there_is_said(
    on_database: Cli, ended: dict[str, Any], words: tuple[str, ...], code: Exit, expected: str
) -> None:
    assert ended
    refused = on_database("get", "one", *words)
    assert refused.code == code
    assert expected in refused.err


def test_lists_by_who_when_and_attributes(on_database: Cli, ended: dict[str, Any]) -> None:
    me = f"{getpass.getuser()}@{platform.node()}"
    root = ended["run"]["id"]

    def ids(*words: str) -> list[str]:
        return [run["id"] for run in on_database("list", "--definition", "parcel", *words, "-o", "json").json["runs"]]

    assert ids("--attribute", "team=billing", "--started-by", me, "--since", "1h") == [root]
    assert ids("--attribute", "team=shipping") == []
    assert ids("--started-by", "somebody@else") == []
    assert ids("--before", "1h") == []
    assert ids("--before", "2999-01-01T00:00:00Z") == [root]
    assert on_database("list", "--since", "yesterday").code == Exit.USAGE
    assert on_database("list", "--attribute", "team").code == Exit.USAGE


def test_nodes_are_cancelled_while_the_run_goes_on(on_database: Cli, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(
        """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: two}
spec: {nodes: [{name: first, waitForEvent: {}}, {name: second, waitForEvent: {}}]}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: both}
spec: {definitionRef: {name: two}}
"""
    )
    assert on_database("submit", str(tmp_path / "two.yaml")).code == Exit.OK
    done = on_database("cancel", "both", "--node", "first", "--reason", "not needed", "-o", "json")
    assert (done.code, done.json) == (
        Exit.OK, {"run": "both", "cancelNodes": ["first"], "answered": True, "settled": {}},
    )  # fmt: skip
    again = on_database("cancel", "both", "--node", "first", "--mode", "graceful")
    assert again.err == "run both: first is Cancelled already, nothing to cancel\n"
    detail = on_database("get", "both", "-o", "json").json
    assert (detail["run"]["phase"], node(detail, "first")["state"], node(detail, "second")["state"]) == (
        "Running", "Cancelled", "Waiting",
    )  # fmt: skip
    lines = on_database("history", "both", "-o", "json").json
    line = next(each for each in lines if each["event"] == "CancelRequested")
    assert (line["who"], line["details"]["nodes"]) == (f"{getpass.getuser()}@{platform.node()}", ["first"])
    missing = on_database("cancel", "both", "--node", "frist")
    assert (missing.code, "did you mean 'first'?" in missing.err) == (Exit.NOT_FOUND, True)
    assert on_database("cancel", "both", "--node", "first", "--mode", "Now").code == Exit.USAGE
    assert on_database("signal", "both", "second").code == Exit.OK
    assert on_database("wait", "both", "--timeout", "10s").code == Exit.OK
