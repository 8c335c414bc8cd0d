"""The definitions that docs/manifests.md shows are run, with tasks as simple as can be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.commands import Cli
from tests.docs.blocks import ROOT, blocks

HEAD = {"apiVersion": "partita.dev/v1alpha1"}
VOTE = ("--event", 'approve={"ok":true}', "--event", 'approve={"ok":true}')
VETO = ("--event", 'approve={"ok":false}')


@dataclass(frozen=True, slots=True)
class Case:
    """A definition of the page, a run of it, and how that ends; fields of the output that are None can be anything."""

    name: str
    input: dict[str, Any]
    output: dict[str, Any] | None
    events: tuple[str, ...] = ()
    error: str = ""
    states: dict[str, str] | None = None


CASES = [
    Case("cheapest-quote", {}, {"price": 3}),
    Case("send-all", {"people": [{"mail": f"p{n}"} for n in range(12)] + [{"mail": ""}]}, {"sent": 12}),
    Case("send-all", {"people": [{"mail": "a"}, {"mail": ""}]}, None, error="task_error"),
    Case("follow-parcel", {"parcel": "x"}, {"seen": ["moving", "delivered"]}),
    Case("shipping", {"lines": ["a", "bc"]}, {"boxes": ["box-a", "box-bc"], "archive": None}),
    Case("four-eyes", {}, {"votes": 2}, VOTE),
    Case("four-eyes", {}, None, VETO, "refused"),
    Case("trip", {"city": "Rome"}, None, (), "task_error", {"hotel~undo": "Completed", "tell": "Completed"}),
]
OTHERS = [
    {"name": "invoice", "nodes": [{"name": "only", "compute": {}}]},
    {"name": "archive", "nodes": [{"name": "only", "compute": {}}]},
]
"""Definitions that the page names and does not show."""


def _shown() -> dict[str, Any]:
    text = [block.text for block in blocks(ROOT / "docs" / "manifests.md") if block.language == "yaml"]
    documents = [document for one in text for document in yaml.safe_load_all(one) if isinstance(document, dict)]
    return {one["metadata"]["name"]: one for one in documents if one["kind"] == "WorkflowDefinition"}


def _file(case: Case, path: Path) -> Path:
    shown = _shown()[case.name]
    if case.name == "follow-parcel":
        shown["spec"]["nodes"][0]["repeat"]["delay"] = "10ms"
    if case.name == "trip":
        shown["spec"]["defaults"]["retry"][0]["initialDelay"] = "10ms"
    if case.name == "send-all":
        shown["spec"]["nodes"][0]["retry"][0]["initialDelay"] = "10ms"
    others = [
        {**HEAD, "kind": "WorkflowDefinition", "metadata": {"name": one["name"]}, "spec": {"nodes": one["nodes"]}}
        for one in OTHERS
    ]
    spec = {"definitionRef": {"name": case.name}, "input": case.input}
    run = {**HEAD, "kind": "WorkflowRun", "metadata": {"name": "one"}, "spec": spec}
    path.write_text(yaml.safe_dump_all([*others, shown, run]), encoding="utf-8")
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.error or 'Succeeded'}")
def test_what_the_page_shows_runs(
    case: Case, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(_file(case, tmp_path / "shown.yaml"))
    words = ["--tasks", "tests.docs.shown_tasks:app", "--database-url", database_url, "-o", "json", *case.events]
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    done = Cli(monkeypatch, capsys)("dev", "run", file, *words)
    (found,) = json.loads(done.out or "[{}]")
    assert found.get("run", {}).get("phase") == ("Failed" if case.error else "Succeeded"), done.out + done.err
    assert (found["error"] or {}).get("type", "") == case.error
    for name, value in (case.output or {}).items():
        assert found["output"][name] == value or (value is None and found["output"][name])
    states = {node["name"]: node["state"] for node in found["nodes"]}
    assert (case.states or {}).items() <= states.items()


def test_every_definition_of_the_page_is_run() -> None:
    assert {*_shown()} - {"greeting"} == {case.name for case in CASES}
