"""``partita submit`` of several documents: nothing is begun unless all of it can be, and what was begun is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from partita.cli.database import DatabaseBackend
from partita.cli.exits import Exit
from partita.cli.plan import Planned
from partita.domain.errors import UnavailableError
from tests.cli.commands import Cli

API = "partita.dev/v1alpha1"
SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}}


def definition(name: str = "small", **spec: Any) -> dict[str, Any]:
    nodes = [{"name": "ask", "waitForEvent": {}}]
    return {
        "apiVersion": API,
        "kind": "WorkflowDefinition",
        "metadata": {"name": name},
        "spec": {"nodes": nodes, **spec},
    }


def run(name: str, of: str = "small", **spec: Any) -> dict[str, Any]:
    spec = {"definitionRef": {"name": of}, **spec}
    return {"apiVersion": API, "kind": "WorkflowRun", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Writes documents into a file, and says its name."""

    def write(*documents: object) -> str:
        path = tmp_path / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return str(path)

    return write


def nothing_is_there(partita: Cli) -> bool:
    return bool(partita("list", "-o", "json").json["runs"] == [])


@pytest.mark.parametrize(
    ("second", "code", "words"),
    [
        (run("two", "nowhere"), Exit.NOT_FOUND, "WorkflowDefinition default/nowhere: does not exist"),
        (run("two", "known", input={"count": "text"}), Exit.USAGE, "WorkflowRun two: spec.input.count: "),
        (run("two", input={"count": 1}, idempotencyKey="k"), Exit.USAGE, "'k' belongs to runs that differ"),
    ],
)
def test_nothing_is_begun_unless_all_of_it_can_be(
    on_database: Cli, file: Any, second: dict[str, Any], code: Exit, words: str
) -> None:
    assert on_database("submit", file(definition("known", inputSchema=SCHEMA))).code == Exit.OK
    refused = on_database("submit", file(definition(), run("one", idempotencyKey="k"), second))
    assert refused.code == code
    assert words in refused.err
    assert refused.out == ""
    assert nothing_is_there(on_database)
    assert [each["name"] for each in on_database("definitions", "-o", "json").json] == ["known"]


def test_keys_and_ids_that_are_taken_are_known_before(on_database: Cli, file: Any) -> None:
    identity = "01890000-0000-7000-8000-000000000001"
    begun = on_database(
        "submit", file(definition(), run("one", idempotencyKey="k", input={"count": 1})), "-o", "json"
    ).json
    refused = on_database("submit", file(run("fresh"), run("two", idempotencyKey="k", input={"count": 2})))
    assert (refused.code, "another input" in refused.err) == (Exit.CONFLICT, True)
    taken = on_database("submit", file(run("fresh"), run("two", runId=begun[1]["id"])))
    assert (taken.code, "another request" in taken.err) == (Exit.CONFLICT, True)
    twice = on_database("submit", file(run("fresh", runId=identity), run("two", runId=identity)))
    assert (twice.code, "is the id of 2 runs" in twice.err) == (Exit.USAGE, True)
    assert [each["name"] for each in on_database("list", "-o", "json").json["runs"]] == ["one"]
    again = on_database("submit", file(run("two", idempotencyKey="k", input={"count": 1})), "-o", "json")
    assert again.json[0]["id"] == begun[1]["id"]


def test_a_run_may_stand_before_its_definition(on_database: Cli, file: Any) -> None:
    done = on_database("submit", file(run("one"), definition()), "-o", "json")
    assert done.code == Exit.OK, done.err
    assert [each["kind"] for each in done.json] == ["WorkflowDefinition", "WorkflowRun"]


def test_what_was_begun_is_said_when_the_rest_fails(
    on_database: Cli, file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = DatabaseBackend._put  # a failure between two starts cannot be had from outside

    async def put(self: DatabaseBackend, planned: Planned) -> Any:
        if planned.run is not None and planned.run.name == "two":
            raise UnavailableError("database: gone")
        return await whole(self, planned)

    monkeypatch.setattr(DatabaseBackend, "_put", put)
    broken = on_database("submit", file(definition(), run("one"), run("two")))
    assert broken.code == Exit.UNAVAILABLE
    assert "database: gone" in broken.err
    assert [line.split()[:3] for line in broken.out.splitlines()[1:]] == [
        ["WorkflowDefinition", "default", "small"],
        ["WorkflowRun", "default", "one"],
    ]
    assert "follow it: partita watch" in broken.err
