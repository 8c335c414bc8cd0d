"""Commands against a database: submit, look, control, wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from partita.cli.database import DatabaseBackend
from partita.cli.exits import Exit
from partita.cli.follow import follow
from partita.settings import Settings
from partita.store import lists, streams
from partita.store.views import RunCount
from tests.cli.commands import Cli, Result

MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: approve}
spec:
  inputSchema: {type: object, required: [count], properties: {count: {type: integer}}}
  nodes:
    - name: ask
      waitForEvent: {schema: {type: object, required: [ok]}}
    - {name: double, compute: {count: "${input.count * 2}", by: "${nodes.ask.output.ok}"}}
  output: {count: "${nodes.double.output.count}"}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: first}
spec:
  definitionRef: {name: approve}
  input: {count: 21}
  tags: [blue]
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A definition and a run that waits for one event."""
    file = tmp_path / "approve.yaml"
    file.write_text(MANIFEST)
    return file


@pytest.fixture
def run_id(on_database: Cli, manifest: Path) -> str:
    """Id of a run that waits."""
    done = on_database("submit", str(manifest), "-o", "json")
    assert done.code == Exit.OK, done.err
    definition, run = done.json
    assert (definition["kind"], definition["result"]) == ("WorkflowDefinition", "version 1 deployed")
    assert (run["kind"], run["result"]) == ("WorkflowRun", "created")
    identity: str = run["id"]
    return identity


def test_a_run_is_shown_with_what_it_waits_for(on_database: Cli, run_id: str) -> None:
    shown = on_database("get", run_id, "-o", "json").json
    assert shown["run"]["phase"] == "Running"
    assert shown["run"]["waiting"] == "event ask"
    assert [(node["name"], node["state"]) for node in shown["nodes"]] == [("ask", "Waiting"), ("double", "Pending")]
    assert "waiting for event ask" in on_database("get", run_id).out


def test_a_signal_lets_it_end_with_its_output(on_database: Cli, run_id: str) -> None:
    sent = on_database("signal", run_id, "ask", '{"ok": true}', "--id", "s1", "-o", "json")
    assert sent.json == {"run": run_id, "signal": "ask", "id": "s1", "state": sent.json["state"]}
    waited = on_database("wait", run_id, "--timeout", "20s", "-o", "json")
    assert waited.code == Exit.OK
    assert waited.json["output"] == {"count": 42}


def test_the_same_signal_again_changes_nothing(on_database: Cli, run_id: str) -> None:
    on_database("signal", run_id, "other", "1", "--id", "s1")
    again = on_database("signal", run_id, "other", "1", "--id", "s1", "-o", "json")
    assert again.code == Exit.OK
    assert again.json["state"] == "Already sent"


def test_a_signal_that_breaks_the_schema_is_refused_with_the_path(on_database: Cli, run_id: str) -> None:
    refused = on_database("signal", run_id, "ask", '{"no": 1}')
    assert refused.code == Exit.CONFLICT
    assert "ok" in refused.err
    assert on_database("get", run_id, "-o", "json").json["run"]["waiting"] == "event ask"


def test_a_cancelled_run_exits_as_failed_and_takes_no_signal(on_database: Cli, run_id: str) -> None:
    assert on_database("cancel", run_id, "--reason", "no longer wanted").code == Exit.OK
    waited = on_database("wait", run_id, "-o", "json")
    assert (waited.code, waited.json["run"]["phase"]) == (Exit.RUN_FAILED, "Cancelled")
    refused = on_database("signal", run_id, "ask", '{"ok": 1}')
    assert refused.code == Exit.CONFLICT
    assert f"try: partita get {run_id}" in refused.err


def test_suspend_and_resume(on_database: Cli, run_id: str) -> None:
    on_database("suspend", run_id)
    assert on_database("get", run_id, "-o", "json").json["run"]["phase"] == "Suspended"
    on_database("resume", run_id)
    assert on_database("get", run_id, "-o", "json").json["run"]["phase"] == "Running"


def test_a_wait_that_is_too_long_says_for_what(on_database: Cli, run_id: str) -> None:
    waited = on_database("wait", run_id, "--timeout", "0s")
    assert waited.code == Exit.TIMEOUT
    assert "event ask" in waited.err


def test_a_name_means_the_same_run_as_long_as_it_is_followed(
    on_database: Cli, manifest: Path, run_id: str, database_url: str
) -> None:
    """An older run of the name that goes on must not take the place of the one that ends."""
    newest = on_database("submit", str(manifest), "-o", "json").json[1]["id"]

    async def follow_to_the_end() -> list[tuple[str, str]]:
        seen = []
        async with await DatabaseBackend.open(Settings.load({"PARTITA_DATABASE_URL": database_url})) as backend:
            async for detail in follow(backend, "", "first", timeout_seconds=20):
                seen.append((detail.run.id, detail.run.phase))
                if len(seen) == 1:
                    await backend.signal("", newest, "ask", {"ok": True}, "s1", "test")
        return seen

    seen = asyncio.run(follow_to_the_end())
    assert {identity for identity, _ in seen} == {newest}
    assert seen[-1] == (newest, "Succeeded")
    assert on_database("get", run_id, "-o", "json").json["run"]["phase"] == "Running"


def test_lists_filter_and_page(on_database: Cli, manifest: Path, run_id: str) -> None:
    on_database("submit", str(manifest))
    assert on_database("cancel", run_id).code == Exit.OK
    assert _ids(on_database("list", "--phase", "cancelled", "-o", "json")) == [run_id]
    assert run_id in _ids(on_database("list", "--tag", "blue", "--definition", "approve", "-o", "json"))
    assert _ids(on_database("list", "--tag", "red", "-o", "json")) == []
    first = on_database("list", "--limit", "1", "-o", "json")
    second = on_database("list", "--limit", "1", "--cursor", first.json["cursor"], "-o", "json")
    assert _ids(second) == [run_id]
    assert "no runs; try: partita submit" in on_database("list", "-n", "elsewhere").err
    assert "no runs fit; try: partita list" in on_database("list", "--tag", "nowhere").err


def test_lists_take_any_of_several_phases_and_count(on_database: Cli, manifest: Path, run_id: str) -> None:
    on_database("submit", str(manifest))
    assert on_database("cancel", run_id).code == Exit.OK
    both = ("--status", "cancelled", "--status", "running", "--until", "2999-01-01T00:00:00Z")
    assert len(_ids(on_database("list", *both, "-o", "json"))) == 2
    assert on_database("list", *both, "--count").out == "2\n"
    assert on_database("list", "--tag", "blue", "--phase", "cancelled", "--count").out == "1\n"
    assert on_database("list", "--tag", "red", "--count", "-o", "json").json == {"count": 0, "exact": True}


def test_a_count_says_where_it_ended(on_database: Cli, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def counted(*_: object) -> RunCount:
        return RunCount(10_000, exact=False)

    assert run_id
    monkeypatch.setattr(lists, "count_runs", counted)
    assert on_database("list", "--count").out == "10,000+\n"
    assert on_database("list", "--count", "-o", "json").json == {"count": 10_000, "exact": False}


def test_short_pages_are_read_on(
    on_database: Cli, manifest: Path, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a page looks at one run only, a list of all still has all."""
    monkeypatch.setattr(streams, "LOOKED_AT", 1)
    submitted = [on_database("submit", str(manifest), "-o", "json").json[1]["id"] for _ in range(3)]
    found = on_database("list", "--tag", "blue", "-o", "json")
    assert set(_ids(found)) == {run_id, *submitted}
    assert found.json["cursor"] == ""


def test_submitting_again_deploys_nothing_new(on_database: Cli, manifest: Path, run_id: str) -> None:
    definition, run = on_database("submit", str(manifest), "-o", "json").json
    assert definition["result"] == "version 1 unchanged"
    assert run["id"] != run_id


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("waitForEvent:", "waitForEvnt:", "waitForEvent"),
        ("nodes.ask.output", "nodes.asq.output", "ask"),
        ("definitionRef: {name: approve}", "definitionReff: {name: approve}", "definitionRef"),
    ],
)
def test_a_bad_manifest_starts_nothing(on_database: Cli, manifest: Path, old: str, new: str, words: str) -> None:
    manifest.write_text(MANIFEST.replace(old, new))
    refused = on_database("submit", str(manifest))
    assert refused.code == Exit.USAGE
    assert words in refused.err
    assert _ids(on_database("list", "-o", "json")) == []


def test_an_input_that_breaks_the_schema_names_its_place(on_database: Cli, manifest: Path) -> None:
    manifest.write_text(MANIFEST.replace("{count: 21}", "{count: many}"))
    refused = on_database("submit", str(manifest))
    assert refused.code == Exit.USAGE
    assert "spec.input.count" in refused.err
    assert _ids(on_database("list", "-o", "json")) == []


def test_what_does_not_exist_is_not_found(on_database: Cli) -> None:
    missing = on_database("get", "01890000-0000-7000-8000-000000000000")
    assert missing.code == Exit.NOT_FOUND
    assert "try: partita list" in missing.err
    assert on_database("signal", "nobody", "x").code == Exit.NOT_FOUND


def _ids(result: Result) -> list[str]:
    assert result.code == Exit.OK, result.err
    return [run["id"] for run in result.json["runs"]]
