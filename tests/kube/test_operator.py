"""The operator, end to end: objects in, runs executed, statuses out."""

from __future__ import annotations

import asyncio
from functools import partial
from uuid import UUID

import pytest

from partita.domain.errors import InvalidError, UnavailableError
from partita.kube.client import JSON_PATCH, KubeClient
from partita.kube.connection import load_connection
from partita.kube.options import OperatorOptions
from partita.kube.resources import RUNS
from partita.settings import Settings
from partita.store.database import Database
from tests.kube.operated import (
    APPROVAL,
    CHAIN,
    Namespace,
    condition,
    definition,
    operating,
    run,
    working,
)
from tests.waiting import until


class Writes:
    """Counts the status patches of an operator."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1


async def status_of(database: Database, run_id: str) -> str:
    """The recorded status of a run."""
    text = "SELECT status FROM partita.workflow_runs WHERE id = $1"
    return str(await database.read(lambda connection: connection.fetchval(text, UUID(run_id))))


async def count_runs(database: Database) -> int:
    """How many runs there are."""
    text = "SELECT count(*) FROM partita.workflow_runs"
    return int(await database.read(lambda connection: connection.fetchval(text)))


async def test_a_run_succeeds_and_says_so(here: Namespace, operator_settings: Settings) -> None:
    chain = definition("chain", CHAIN, output={"n": "${nodes.third.output.echo}"})
    writes = Writes()
    options = OperatorOptions(before_write=writes)
    async with operating(here, operator_settings, options), working(operator_settings):
        await here.create(chain)
        await here.accepted("chain")
        created = await here.create(run("one", "chain"))
        status = await here.phase("one", "Succeeded")
        await here.kubectl("wait", "--for=condition=Completed", "wfr/one", "--timeout=10s")
    assert writes.count <= 2
    assert status["progress"] == "3/3"
    assert status["observedGeneration"] == created["metadata"]["generation"]
    assert condition(status, "Succeeded") == "True"
    assert condition(status, "Completed") == "True"
    assert [node["state"] for node in status["nodes"]] == ["Completed"] * 3
    assert status["output"] == {"n": {}}
    assert status["version"] == 1
    assert status["finishedAt"] >= status["startedAt"]
    assert "finalizers" not in (await here.get(RUNS, "one"))["metadata"]


async def test_a_run_tells_what_it_waits_for_and_takes_a_signal(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL, output={"by": "${nodes.approval.output.by}"}))
        await here.create(run("one", "approve"))
        waiting = await here.phase("one", "Running")
        assert waiting["waitingFor"] == "event approval"
        assert waiting["nodes"] == [{"name": "approval", "state": "Waiting", "attempt": 0, "message": "event approval"}]
        await here.signal("one", "a1", payload={"by": "me"})
        status = await here.phase("one", "Succeeded")
    assert status["output"] == {"by": "me"}
    assert status["signals"] == [{"id": "a1", "state": "Consumed"}]
    assert status["observedGeneration"] == 2
    assert {each["observedGeneration"] for each in status["conditions"]} == {2}


async def test_suspend_and_resume(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("chain", CHAIN))
        await here.create(run("one", "chain", suspend=True))
        suspended = await here.phase("one", "Suspended")
        assert condition(suspended, "Suspended") == "True"
        assert suspended["progress"] == "0/3"
        await here.kubectl("patch", "wfr", "one", "--type=merge", "-p", '{"spec":{"suspend":false}}')
        status = await here.phase("one", "Succeeded")
    assert condition(status, "Suspended") == "False"


async def test_cancel(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve"))
        await here.phase("one", "Running")
        await here.kubectl("patch", "wfr", "one", "--type=merge", "-p", '{"spec":{"cancel":{"reason":"no more"}}}')
        status = await here.phase("one", "Cancelled")
        await here.kubectl("wait", "--for=condition=Completed", "wfr/one", "--timeout=10s")
    assert condition(status, "Succeeded") == "False"
    assert "no more" in status["message"]


async def test_a_new_generation_of_a_finished_run_is_observed(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("chain", CHAIN))
        await here.create(run("one", "chain"))
        await here.phase("one", "Succeeded")
        await here.patch_run("one", {"ttlSecondsAfterFinished": 5000})
        status = await here.run_until("one", lambda status: status.get("observedGeneration") == 2, "observed")
        await here.kubectl("wait", "--for=condition=Completed", "wfr/one", "--timeout=10s")
    assert {each["observedGeneration"] for each in status["conditions"]} == {2}
    assert status["phase"] == "Succeeded"


async def test_sixty_signals_sent_at_once_are_delivered_once_each(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    """The API server evaluates every patch that met another one again, so a patch needs more than the usual 10 s."""
    waiting = {"name": "votes", "waitForEvent": {"name": "vote", "until": "${events.size() >= 60}"}}
    async with operating(here, operator_settings):
        await here.create(definition("ballot", [waiting]))
        await here.create(run("one", "ballot"))
        await here.phase("one", "Running")
        connect = partial(load_connection, here.cluster.kubeconfig)
        async with KubeClient(connect, connections=60, seconds=60) as client:
            await asyncio.gather(*(vote(client, here.name, f"v{number}") for number in range(60)))
        status = await here.phase("one", "Succeeded")
        after = await until(lambda: pruned(here, "one"), what="acknowledged signals to be removed")
    text = "SELECT count(*) FROM partita.workflow_events WHERE consumed_by = 'votes'"
    assert await database.read(lambda connection: connection.fetchval(text)) == 60
    assert "waitingFor" not in status
    assert len(after) <= 48


async def vote(client: KubeClient, namespace: str, identity: str) -> None:
    """Append one signal; one without an answer is sent again."""
    operation = {"op": "add", "path": "/spec/signals/-", "value": {"id": identity, "name": "vote"}}

    async def sent() -> bool:
        try:
            await client.patch(RUNS.path(namespace, "one"), [operation], JSON_PATCH)
        except UnavailableError:
            return False
        except InvalidError as error:
            return "Duplicate value" in error.message
        return True

    await until(sent, within=180, every=0.2, what=f"signal {identity} to be stored")


async def pruned(here: Namespace, name: str) -> list[object]:
    signals = (await here.get(RUNS, name))["spec"]["signals"]
    return list(signals) if len(signals) <= 48 else []


async def test_a_deleted_object_cancels_its_run_at_once(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve"))
        status = await here.phase("one", "Running")
        await here.kubectl("delete", "wfr", "one", "--timeout=10s")

        async def cancelled() -> bool:
            return await status_of(database, status["runId"]) == "Cancelled"

        await until(cancelled, what="the run to be cancelled")


async def test_an_object_made_again_is_a_new_run(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve"))
        first = await here.phase("one", "Running")
        await here.kubectl("delete", "wfr", "one", "--timeout=10s")
        await here.create(run("one", "approve"))
        second = await here.run_until("one", lambda status: bool(status.get("runId")), "started")
        await here.signal("one", "a1")
        await here.phase("one", "Succeeded")
        assert second["runId"] != first["runId"]
        assert await status_of(database, first["runId"]) == "Cancelled"
    assert await count_runs(database) == 2


@pytest.mark.usefixtures("quick_deletion")
async def test_a_finished_run_is_deleted_after_its_time(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve", ttlSecondsAfterFinished=0, cancel={}))

        async def gone() -> bool:
            return not await here.get(RUNS, "one")

        await until(gone, within=40, what="the object to be deleted")


async def test_objects_of_other_namespaces_are_left_alone(here: Namespace, operator_settings: Settings) -> None:
    other = Namespace(here.cluster, here.client, "default")
    async with operating(here, operator_settings), working(operator_settings):
        await other.create(run(here.name, "chain"))
        await here.create(definition("chain", CHAIN))
        await here.create(run("one", "chain"))
        await here.phase("one", "Succeeded")
        assert "status" not in await other.get(RUNS, here.name)
    await other.kubectl("delete", "wfr", here.name)


async def test_a_second_operator_takes_over(here: Namespace, operator_settings: Settings) -> None:
    async with working(operator_settings):
        async with operating(here, operator_settings):
            await here.create(definition("chain", CHAIN))
            await here.create(run("one", "chain"))
            await here.phase("one", "Succeeded")
            first = await here.engine_until(lambda status: bool(status.get("epoch")), "with an epoch")
        async with operating(here, operator_settings):
            await here.create(run("two", "chain"))
            await here.phase("two", "Succeeded")
            second = await here.engine_until(lambda status: status["epoch"] > first["epoch"], "with a later epoch")
    assert second["leader"] != first["leader"]
