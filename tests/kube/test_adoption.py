"""An idempotency key and a second object: the run changes hands when the first object is gone, and only then."""

from __future__ import annotations

import pytest

from partita.kube.resources import RUNS
from partita.settings import Settings
from partita.store.database import Database
from tests.kube.operated import APPROVAL, CHAIN, Namespace, condition, definition, operating, run, working
from tests.kube.test_operator import count_runs
from tests.waiting import until


@pytest.mark.parametrize("name", ["order", "another"])
async def test_a_finished_run_is_shown_by_an_object_made_again(
    here: Namespace, operator_settings: Settings, database: Database, name: str
) -> None:
    """Whether the deletion was seen or not makes no difference, nor does a restart of the operator."""
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("chain", CHAIN, output={"n": 1}))
        await here.create(run("order", "chain", idempotencyKey="k"))
        await here.patch_run("order", {"signals": [{"id": "s1", "name": "nothing"}]})
        first = await here.run_until("order", lambda status: bool(status.get("finishedAt")), "finished")
    await here.kubectl("delete", "wfr", "order", "--timeout=10s")
    async with operating(here, operator_settings), working(operator_settings):
        created = await here.create(run(name, "chain", idempotencyKey="k"))
        second = await here.phase(name, "Succeeded")
        await here.kubectl("wait", "--for=condition=Completed", f"wfr/{name}", "--timeout=10s")
        assert {key: second[key] for key in ("runId", "output", "finishedAt")} == {
            key: first[key] for key in ("runId", "output", "finishedAt")
        }
        assert second["observedGeneration"] == created["metadata"]["generation"] == 1
        await here.patch_run(name, {"ttlSecondsAfterFinished": 5000})
        await here.run_until(name, lambda status: status.get("observedGeneration") == 2, "observed")
    assert await count_runs(database) == 1
    ended = await database.read(lambda connection: connection.fetch("SELECT name FROM partita.run_endings"))
    assert [row["name"] for row in ended] == [name]


@pytest.mark.usefixtures("quick_deletion")
async def test_an_object_made_again_after_its_time_to_live(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    """The object that took the run over has a time to live of its own."""
    manifest = run("order", "approve", idempotencyKey="k", ttlSecondsAfterFinished=0, cancel={})
    later = run("order", "approve", idempotencyKey="k", ttlSecondsAfterFinished=5000, cancel={})
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        first = await here.create(manifest)
        await until(lambda: absent(here, "order"), within=40, what="the first object to be deleted")
        second = await here.create(later)
        await here.phase("order", "Cancelled")
        await here.patch_run("order", {"ttlSecondsAfterFinished": 0})
        await until(lambda: absent(here, "order"), within=40, what="the second object to be deleted")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert await count_runs(database) == 1


async def absent(here: Namespace, name: str) -> bool:
    return not await here.get(RUNS, name)


async def test_an_unfinished_run_is_cancelled_with_its_object_and_shown_by_the_next(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("order", "approve", idempotencyKey="k"))
        first = await here.phase("order", "Running")
    await here.kubectl("delete", "wfr", "order", "--timeout=10s")
    await here.create(run("order", "approve", idempotencyKey="k"))
    async with operating(here, operator_settings):
        second = await here.phase("order", "Cancelled")
    assert second["runId"] == first["runId"]
    assert await count_runs(database) == 1


async def test_a_second_object_is_refused_while_the_first_exists(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("first", "approve", idempotencyKey="k"))
        await here.phase("first", "Running")
        await here.create(run("second", "approve", idempotencyKey="k"))
        refused = await here.phase("second", "Failed")
        await here.create(run("third", "approve", idempotencyKey="k", input={"other": 1}))
        other = await here.phase("third", "Failed")
        await here.signal("first", "a1")
        await here.phase("first", "Succeeded")
    assert condition(refused, "Accepted", "reason") == "IdempotencyKeyInUse"
    assert "another WorkflowRun" in refused["message"]
    assert "another input" in other["message"]
    assert await count_runs(database) == 1
