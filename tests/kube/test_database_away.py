"""PostgreSQL is away for a minute, or while a leader ends; operator and worker are processes, as people run them."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time

from partita.kube.resources import ENGINE_NAME, LEASE_NAME, LEASES
from partita.settings import DatabaseSettings, Settings
from partita.store.embedded import Server
from tests.kube.operated import Namespace, Object, condition, definition, leading, run, task
from tests.kube.operated import operator_settings as settings_of
from tests.kube.process import operator_process, partita_process
from tests.kube.test_events_shown import told
from tests.probing import free_port, says
from tests.waiting import until

AWAY_SECONDS = 61.0
"""Longer than any request, lease or patience of the default settings."""
SHOWN_SECONDS = 30.0
"""Within this long the WorkflowEngine says so."""
SOON = 7.0
"""Five seconds are promised for an end without a database; two more are for a machine that is busy with other tests."""
TASKS = "tests.kube.echo_tasks:app"


def pausing(duration: str) -> list[Object]:
    wait: Object = {"name": "pause", "wait": {"duration": duration}, "dependsOn": ["first"]}
    return [task("first"), wait, task("last", dependsOn=["pause"])]


async def ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def alive(*processes: subprocess.Popen[bytes]) -> bool:
    return all(process.poll() is None for process in processes)


async def test_a_minute_without_a_database(here: Namespace, restartable_server: Server) -> None:
    settings = settings_of(Settings(database=DatabaseSettings(url=restartable_server.url("partita"))), here.name)
    leads, works = free_port(), free_port()
    approve = [
        task("first"),
        {"name": "go", "waitForEvent": {}, "dependsOn": ["first"]},
        task("last", dependsOn=["go"]),
    ]
    words = ("operator", "--kubeconfig", str(here.cluster.kubeconfig), "--health-port", str(leads))
    worker = {"PARTITA_WORKER_HEALTH_BIND": f"127.0.0.1:{works}"}
    with (
        partita_process(settings, *words) as operator,
        partita_process(settings, "worker", TASKS, environment=worker) as worker_,
    ):
        await here.create(definition("approve", approve))
        await here.create(definition("pausing", pausing("15s")))
        await here.accepted("approve")
        await here.accepted("pausing")
        await here.create(run("waits", "approve"))
        await here.create(run("pauses", "pausing"))
        await here.run_until("waits", lambda status: status.get("waitingFor") == "event go", "waiting")
        await here.run_until("pauses", lambda status: "timer" in (status.get("waitingFor") or ""), "waiting")
        before = await here.engine_until(lambda status: condition(status, "Synced") == "True", "Synced")
        await says(leads, "/readyz", 200, "leader")
        await says(works, "/readyz", 200, "ready")

        await asyncio.to_thread(restartable_server.stop, "immediate")
        gone = time.monotonic()
        shown = await here.engine_until(lambda s: condition(s, "Synced") == "False", "not Synced", SHOWN_SECONDS)
        assert condition(shown, "Synced", "reason") == "Unavailable"
        assert condition(shown, "Synced", "message").startswith("database: ")
        assert shown["phase"] == "Degraded"
        await says(leads, "/readyz", 200, "database: not reached")
        await here.create(run("new", "pausing"))
        await here.signal("waits", "s1", name="go")
        await says(works, "/readyz", 503, "database: answered no heartbeat", within=AWAY_SECONDS)
        for port in (leads, works):
            await says(port, "/livez", 200, "ok")
        await asyncio.sleep(gone + AWAY_SECONDS - time.monotonic())
        assert alive(operator, worker_)

        await asyncio.to_thread(restartable_server.start)
        after = await here.engine_until(lambda status: condition(status, "Synced") == "True", "Synced again")
        for name in ("waits", "pauses", "new"):
            await here.phase(name, "Succeeded")
        await says(works, "/readyz", 200, "ready")
        assert await says(leads, "/readyz", 200, "leader") == "leader\n"
        assert alive(operator, worker_), "nobody was restarted"
        assert (after["leader"], after["epoch"]) == (before["leader"], before["epoch"]), "nor was anything begun anew"
        await told(here, ENGINE_NAME, "DatabaseLost", "DatabaseRecovered")


async def test_a_leader_ends_soon_without_a_database(here: Namespace, restartable_server: Server) -> None:
    settings = settings_of(Settings(database=DatabaseSettings(url=restartable_server.url("partita"))), here.name)
    with operator_process(here.cluster.kubeconfig, settings, "first") as operator:
        await leading(here, "first")
        await asyncio.to_thread(restartable_server.stop, "immediate")
        await here.engine_until(lambda status: condition(status, "Synced") == "False", "not Synced")
        await here.create(run("new", "nothing"))  # its handler waits for the database, too
        operator.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        await until(lambda: ended(operator), within=SOON, what="the operator to end")
        print(f"without a database a leader ended {time.monotonic() - begun:.1f} s after SIGTERM")
        assert operator.returncode == 0
    lease = await here.client.get(LEASES.path(here.name, LEASE_NAME))
    assert not lease["spec"].get("holderIdentity"), "the next leader need not wait"
