"""Definitions and bad input: everything that is wrong is said, nothing is half-started."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.cluster.errors import ClusterError
from partita.domain.errors import PartitaError
from partita.kube.resources import DEFINITIONS, RUNS
from partita.settings import Settings
from partita.store.database import Database
from tests.kube.operated import CHAIN, Namespace, Object, condition, definition, operating, run, task, working
from tests.waiting import until


async def count(database: Database, table: str) -> int:
    """Rows of a table."""
    text = f"SELECT count(*) FROM partita.{table}"  # noqa: S608  # names of the test itself
    return int(await database.read(lambda connection: connection.fetchval(text)))


async def test_versions_follow_the_content(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("chain", CHAIN))
        first = await here.accepted("chain")
        assert (first["version"], first["nodes"], first["observedGeneration"]) == (1, 3, 1)
        path = DEFINITIONS.path(here.name, "chain")
        await here.client.patch(path, {"spec": {"description": "another"}})
        second = await here.definition_until("chain", lambda status: status.get("version") == 2, "version 2")
        assert second["observedGeneration"] == 2
        await here.client.patch(path, {"spec": {"description": None}})
        third = await here.definition_until("chain", lambda status: status.get("observedGeneration") == 3, "observed")
        assert (third["version"], third["hash"]) == (1, first["hash"])
        assert condition(third, "Accepted", "lastTransitionTime") == condition(first, "Accepted", "lastTransitionTime")


async def test_a_restarted_operator_writes_no_status_again(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("chain", CHAIN))
        await here.accepted("chain")
    before = (await here.get(DEFINITIONS, "chain"))["metadata"]
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(run("one", "chain"))
        await here.phase("one", "Succeeded")
    after = (await here.get(DEFINITIONS, "chain"))["metadata"]
    assert after["resourceVersion"] == before["resourceVersion"]
    assert "annotations" not in after


BROKEN = [
    {"name": "a", "task": {"type": "x"}, "dependsOn": ["b"]},
    {"name": "b", "task": {"type": "x"}, "dependsOn": ["a"]},
    {"name": "c", "compute": {"n": "${nodes.nowhere.output}"}},
    {"name": "d", "compute": {"n": "${1 +}"}},
    {"name": "e", "job": {"template": {}}},
]


async def test_every_problem_is_listed(here: Namespace, operator_settings: Settings, database: Database) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("broken", BROKEN))
        status = await here.definition_until("broken", lambda status: bool(status.get("problems")), "refused")
    words = "\n".join(f"{problem['path']}: {problem['message']}" for problem in status["problems"])
    assert len(status["problems"]) >= 4
    assert "nowhere" in words
    assert "spec.nodes[3].compute.n" in words
    assert "spec.nodes[4].job" in words
    assert condition(status, "Accepted") == "False"
    assert condition(status, "Accepted", "reason") == "Invalid"
    assert condition(status, "Ready") == "False"
    assert await count(database, "workflow_definitions") == 0


async def test_a_cycle_is_named(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("cycle", BROKEN[:2]))
        status = await here.definition_until("cycle", lambda status: bool(status.get("problems")), "refused")
    assert "cycle" in condition(status, "Accepted", "message")


async def test_an_invalid_change_leaves_the_version_before_it(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("chain", CHAIN))
        await here.accepted("chain")
        nodes = [*CHAIN, {"name": "bad", "compute": {"n": "${nowhere}"}}]
        await here.client.patch(DEFINITIONS.path(here.name, "chain"), {"spec": {"nodes": nodes}})
        status = await here.definition_until("chain", lambda status: bool(status.get("problems")), "refused")
        assert condition(status, "Accepted") == "False"
        assert (condition(status, "Ready"), condition(status, "Ready", "reason")) == ("True", "EarlierVersion")
        await here.create(run("one", "chain"))
        assert (await here.phase("one", "Succeeded"))["version"] == 1


async def test_a_deleted_definition_takes_no_new_runs(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("wait", [{"name": "go", "waitForEvent": {}}]))
        await here.accepted("wait")
        await here.create(run("old", "wait"))
        await here.phase("old", "Running")
        await here.kubectl("delete", "wfd", "wait", "--timeout=10s")

        async def refused() -> Object | None:
            name = f"new-{refused.tries}"  # type: ignore[attr-defined]  # a counter of this test's own
            refused.tries += 1  # type: ignore[attr-defined]  # as above
            await here.create(run(name, "wait"))
            status = await here.phase(name, "Pending", "Running")
            return status if condition(status, "Accepted", "reason") == "DefinitionNotFound" else None

        refused.tries = 0  # type: ignore[attr-defined]  # as above
        assert await until(refused, what="new runs to wait for the definition")
        await here.signal("old", "a", name="go")
        await here.phase("old", "Succeeded")


async def test_a_run_waits_for_its_definition_and_starts_when_it_appears(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(run("early", "chain"))
        status = await here.phase("early", "Pending")
        assert status["waitingFor"] == "its definition"
        assert condition(status, "Accepted", "reason") == "DefinitionNotFound"
        assert condition(status, "Completed") == "False"
        assert "chain" in status["message"]
        await here.create(definition("chain", CHAIN))
        done = await here.phase("early", "Succeeded")
        assert condition(done, "Accepted") == "True"
        assert await count(database, "run_refusals") == 0


SCHEMA: Object = {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}}}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sku": 7}, "input.sku"),
        ({}, "sku"),
        ({"sku": "a\0b"}, "NUL"),
    ],
)
async def test_bad_input_is_refused_with_its_path(
    here: Namespace, operator_settings: Settings, database: Database, given: Any, words: str
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("order", CHAIN, inputSchema=SCHEMA))
        await here.accepted("order")
        await here.create(run("bad", "order", input=given))
        status = await here.phase("bad", "Failed")
        await here.kubectl("wait", "--for=condition=Completed", "wfr/bad", "--timeout=10s")
    assert words in status["message"]
    assert condition(status, "Accepted") == "False"
    assert condition(status, "Succeeded") == "False"
    assert await count(database, "workflow_runs") == 0
    assert await count(database, "ready_tasks") == 0


async def test_the_refusal_of_a_deleted_object_is_forgotten(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    async with operating(here, operator_settings):
        await here.create(run("early", "chain"))
        await here.phase("early", "Pending")
        await here.kubectl("delete", "wfr", "early", "--timeout=10s")

        async def forgotten() -> bool:
            return await count(database, "run_refusals") == 0

        await until(forgotten, what="the refusal to be forgotten")


async def test_what_this_version_does_not_know_is_refused_or_named(
    here: Namespace, operator_settings: Settings
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("wait", [{"name": "go", "waitForEvent": {}}]))
        await here.accepted("wait")
        await here.create(run("rerun", "wait", rerunOf={"runId": "019ad000-0000-7000-8000-000000000001"}))
        assert "rerunOf" in (await here.phase("rerun", "Failed"))["message"]
        await here.create(run("one", "wait"))
        await here.phase("one", "Running")
        await here.patch_run("one", {"retry": 1})
        status = await here.run_until("one", lambda status: status.get("observedGeneration") == 2, "observed")
    assert condition(status, "Accepted", "reason") == "ControlNotSupported"
    assert "spec.retry" in condition(status, "Accepted", "message")


async def test_an_input_of_two_mebibytes_never_becomes_an_object(here: Namespace) -> None:
    manifest = run("huge", "chain", input={"text": "x" * (2 * 1024 * 1024)})
    with pytest.raises(PartitaError, match=r"(?i)too large|larger than|limit|exceeds"):
        await here.create(manifest)
    with pytest.raises(ClusterError):
        await here.kubectl("get", "wfr", "huge")
    assert not await here.get(RUNS, "huge")


async def test_tasks_of_unknown_types_are_no_concern_of_the_operator(
    here: Namespace, operator_settings: Settings
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("other", [task("a", "nobody-has-it")]))
        await here.accepted("other")
        await here.create(run("one", "other"))
        status = await here.phase("one", "Running")
    assert status["nodes"][0]["state"] == "Queued"


async def test_a_run_of_a_definition_that_was_not_accepted_says_so(
    here: Namespace, operator_settings: Settings
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("broken", BROKEN))
        await here.create(run("one", "broken"))
        words = f"WorkflowDefinition {here.name}/broken: was not accepted: spec.nodes"
        status = await here.run_until("one", lambda status: words in status.get("message", ""), "told")
        assert status["message"].endswith(f"; try: kubectl describe wfd broken -n {here.name}")
        assert condition(status, "Accepted", "reason") == "DefinitionNotFound"
        await here.client.patch(DEFINITIONS.path(here.name, "broken"), {"spec": {"nodes": CHAIN}})
        await here.run_until("one", lambda status: bool(status.get("runId")), "begun")
