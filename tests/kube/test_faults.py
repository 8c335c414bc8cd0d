"""What the operator survives: its own death, a lost API server, a lost database, deletions that nobody saw."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from e2e.cluster.contract import RestartableCluster
from partita.kube.options import OperatorOptions
from partita.kube.resources import ENGINE_NAME, LEASE_NAME, LEASES, RUNS
from partita.kube.vitals import NO_DATABASE
from partita.settings import DatabaseSettings, Settings
from partita.store.database import Database
from partita.store.embedded import Server
from tests.kube import operated
from tests.kube.operated import (
    APPROVAL,
    CHAIN,
    PATIENCE_SECONDS,
    Namespace,
    Object,
    condition,
    definition,
    leading,
    operating,
    run,
    task,
    working,
)
from tests.kube.operated import (
    operator_settings as settings_of,
)
from tests.kube.process import DIE, operator_process, partita_process
from tests.kube.test_events_shown import told
from tests.probing import ask, free_port
from tests.waiting import until

QUICK = {"lease_duration_ms": 3_000, "lease_deadline_ms": 2_000, "lease_renew_ms": 1_000}


async def runs(database: Database) -> list[tuple[UUID, str]]:
    """(id, status) of all runs."""
    text = "SELECT id, status FROM partita.workflow_runs ORDER BY id"
    rows = await database.read(lambda connection: connection.fetch(text))
    return [(row["id"], row["status"]) for row in rows]


async def ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


async def test_death_between_transaction_and_status(here: Namespace, settings: Settings, database: Database) -> None:
    quick = settings_of(settings, here.name, **QUICK)
    with operator_process(here.cluster.kubeconfig, quick, "victim", DIE) as victim:
        await leading(here, "victim")
        await here.create(definition("chain", CHAIN))
        await here.accepted("chain")
        await here.create(run("one", "chain"))
        await until(lambda: ended(victim), within=PATIENCE_SECONDS, what="the operator to kill itself")
    assert victim.returncode == -signal.SIGKILL
    before = await runs(database)
    assert len(before) == 1
    assert "status" not in await here.get(RUNS, "one")
    async with operating(here, quick), working(quick):
        status = await here.phase("one", "Succeeded")
    assert [(str(identity), state) for identity, state in await runs(database)] == [(status["runId"], "Succeeded")]
    assert status["runId"] == str(before[0][0])


async def test_sigterm_ends_in_good_order_and_gives_the_lease_up(here: Namespace, settings: Settings) -> None:
    slow = settings_of(settings, here.name, lease_duration_ms=60_000, lease_deadline_ms=50_000)
    with operator_process(here.cluster.kubeconfig, slow, "first") as process:
        await leading(here, "first")
        process.send_signal(signal.SIGTERM)
        await until(lambda: ended(process), within=PATIENCE_SECONDS, what="the operator to end")
        assert process.returncode == 0
    lease = await here.client.get(LEASES.path(here.name, LEASE_NAME))
    assert not lease["spec"].get("holderIdentity")
    async with operating(here, slow):
        pass


async def test_a_killed_leader_is_succeeded_by_the_standby(here: Namespace, settings: Settings) -> None:
    quick = settings_of(settings, here.name, **QUICK)
    with operator_process(here.cluster.kubeconfig, quick, "first") as first:
        await leading(here, "first")
        with operator_process(here.cluster.kubeconfig, quick, "second") as second:
            first.kill()
            await leading(here, "second")
            assert second.poll() is None


async def test_a_frozen_leader_stands_by_when_it_wakes_up(here: Namespace, settings: Settings) -> None:
    quick = settings_of(settings, here.name, **QUICK)
    with operator_process(here.cluster.kubeconfig, quick, "first") as first:
        await leading(here, "first")
        first.send_signal(signal.SIGSTOP)
        with operator_process(here.cluster.kubeconfig, quick, "second") as second:
            await leading(here, "second")
            first.send_signal(signal.SIGCONT)
            second.kill()
            await leading(here, "first-2")
            assert first.poll() is None


async def test_deletions_while_the_operator_was_away(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("gone", "approve"))
        await here.create(run("stays", "approve"))
        await here.create(definition("other", APPROVAL))
        gone, stays = await here.phase("gone", "Running"), await here.phase("stays", "Running")
        await here.accepted("other")
    await here.kubectl("delete", "wfr/gone", "wfd/other", "--timeout=10s")
    async with operating(here, operator_settings):

        async def settled() -> bool:
            states = {str(identity): state for identity, state in await runs(database)}
            text = "SELECT count(*) FROM partita.workflow_definitions WHERE deployed"
            deployed = await database.read(lambda connection: connection.fetchval(text))
            return states == {gone["runId"]: "Cancelled", stays["runId"]: "Running"} and deployed == 1

        await until(settled, what="resync to find the deletions and nothing else")
        await here.signal("stays", "a1")
        await here.phase("stays", "Succeeded")


async def test_changes_while_the_operator_was_away(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve"))
        await here.phase("one", "Running")
    await here.create(run("two", "approve"))
    for name in ("one", "two"):
        await here.signal(name, "a1")
    async with operating(here, operator_settings):
        for name in ("one", "two"):
            await here.phase(name, "Succeeded")


async def test_a_status_that_lags_is_written_again(here: Namespace, operator_settings: Settings) -> None:
    """A queue row that went without its patch, as after a restored backup of the cluster."""
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve"))
        shown = await here.phase("one", "Running")
    stale = {**shown, "revision": 0, "waitingFor": "something old"}
    await here.client.patch(RUNS.path(here.name, "one", "status"), {"status": stale})
    async with operating(here, operator_settings):
        await here.run_until("one", lambda status: status.get("waitingFor") == "event approval", "current again")


async def test_a_lost_database_shows_on_the_engine_and_is_recovered_from(
    here: Namespace, restartable_server: Server
) -> None:
    """It is away for the seconds until that shows; a minute takes the same way through the code."""
    database = DatabaseSettings(url=restartable_server.url("partita"))
    settings = settings_of(Settings(database=database), here.name)
    slow = [task("first"), {"name": "go", "waitForEvent": {}, "dependsOn": ["first"]}, task("last", dependsOn=["go"])]
    port = free_port()
    async with operating(here, settings, OperatorOptions(health_port=port)), working(settings):
        await here.create(definition("slow", slow))
        await here.create(run("one", "slow"))
        await here.run_until("one", lambda status: status.get("waitingFor") == "event go", "waiting")
        await here.engine_until(lambda status: condition(status, "Synced") == "True", "Synced")
        await asyncio.to_thread(restartable_server.stop)
        await here.engine_until(lambda status: condition(status, "Synced") == "False", "not Synced")
        assert await asyncio.to_thread(ask, port, "/livez") == (200, "ok\n")
        assert await asyncio.to_thread(ask, port, "/readyz") == (200, f"leader\n{NO_DATABASE}\n")
        assert "\npartita_database_up 0\n" in (await asyncio.to_thread(ask, port, "/metrics"))[1]
        await here.signal("one", "s1", name="go")
        await here.create(run("two", "slow"))
        await asyncio.to_thread(restartable_server.start)
        await here.engine_until(lambda status: condition(status, "Synced") == "True", "Synced again")
        await here.phase("one", "Succeeded", within=60)
        await here.signal("two", "s1", name="go")
        await here.phase("two", "Succeeded", within=60)
        await told(here, ENGINE_NAME, "DatabaseLost", "DatabaseRecovered")


@pytest.fixture(scope="module")
def there(restartable_cluster: RestartableCluster) -> RestartableCluster:
    """A cluster whose API server a test may take away, with the CRDs and a namespace for each such test."""
    crds = Path(__file__).parents[2] / "crds"
    restartable_cluster.apply(crds, arguments=("--server-side", "--force-conflicts"))
    restartable_cluster.run_kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(crds))
    for name in ("lost", "away"):
        restartable_cluster.run_kubectl("create", "namespace", name)
    return restartable_cluster


async def test_a_lost_api_server(there: RestartableCluster, settings: Settings, database: Database) -> None:
    """While it is away the run goes on in the database; when it is back the status follows."""
    patient = settings_of(settings, "lost", lease_duration_ms=90_000, lease_deadline_ms=80_000)
    pause: Object = {"name": "pause", "wait": {"duration": "2s"}}
    nodes = [task("first"), pause | {"dependsOn": ["first"]}, task("last", dependsOn=["pause"])]
    async with operated.namespace_of(there, "lost") as here, operating(here, patient), working(patient):
        await here.create(definition("pausing", nodes))
        await here.accepted("pausing")
        await here.create(run("one", "pausing"))
        await here.run_until("one", lambda status: "timer" in (status.get("waitingFor") or ""), "waiting")
        await asyncio.to_thread(there.stop_apiserver)

        async def done() -> bool:
            return [state for _, state in await runs(database)] == ["Succeeded"]

        await until(done, what="the run to succeed without an API server")
        await asyncio.to_thread(there.start_apiserver)
        await here.phase("one", "Succeeded", within=60)
        await here.create(run("two", "pausing"))
        await here.phase("two", "Succeeded", within=60)


async def test_an_api_server_that_stays_away_costs_leadership_and_no_restart(
    there: RestartableCluster, settings: Settings
) -> None:
    """An operator started by hand lets go of everything, and leads again, under a new name, when the API is back."""
    quick = settings_of(settings, "away", **QUICK)
    pause: Object = {"name": "pause", "wait": {"duration": "2s"}}
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = ("operator", "--kubeconfig", str(there.kubeconfig), "--health-port", str(port))
    async with operated.namespace_of(there, "away") as here, working(quick):
        with partita_process(quick, *words) as process:
            await here.create(definition("pausing", [task("first"), pause | {"dependsOn": ["first"]}]))
            await here.accepted("pausing")
            before = await here.engine_until(lambda status: bool(status.get("leader")), "led")
            await here.create(run("one", "pausing"))
            await here.phase("one", "Running")
            await asyncio.to_thread(there.stop_apiserver)
            try:
                await until(lambda: says(port, "starting"), what="leadership to be lost")
            finally:
                await asyncio.to_thread(there.start_apiserver)
            after = await here.engine_until(lambda status: status["leader"] != before["leader"], "led again", 60)
            await here.phase("one", "Succeeded")
            await here.create(run("two", "pausing"))
            await here.phase("two", "Succeeded")
            assert process.poll() is None
    assert (after["leader"], after["epoch"]) == (f"{before['leader']}-2", before["epoch"] + 1)


async def says(port: int, word: str) -> bool:
    """Whether an operator's probe answers with this word."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.decode().endswith(f"{word}\n")
