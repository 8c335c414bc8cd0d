"""How long it takes until another leads, with the times of a real installation (15, 10 and 2 seconds).

The bounds are promises to people who run two replicas; what was measured is printed.
"""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import replace
from pathlib import Path

from partita.domain.errors import NotFoundError
from partita.kube.resources import LEASE_NAME, LEASES
from partita.settings import OperatorSettings, Settings
from tests.kube.operated import Namespace, leading
from tests.kube.process import operator_process, partita_process
from tests.kube.wire import wire
from tests.probing import ask, free_port
from tests.waiting import until

KILLED_SECONDS = 20.0
STOPPED_SECONDS = 3.0
FROZEN_SECONDS = 12.0


def real(settings: Settings, here: Namespace) -> Settings:
    """An installation with the default times."""
    return replace(settings, operator=OperatorSettings(namespace=here.name, watch_namespaces=(here.name,)))


async def holder(here: Namespace) -> str:
    try:
        return str((await here.client.get(LEASES.path(here.name, LEASE_NAME)))["spec"].get("holderIdentity") or "")
    except NotFoundError:
        return ""


async def held_by(here: Namespace, identity: str, within: float) -> float:
    """Seconds until the Lease names a candidate."""
    begun = time.monotonic()

    async def check() -> bool:
        return await holder(here) == identity

    await until(check, within=within, what=f"the Lease to name {identity}")
    return time.monotonic() - begun


async def standing_by(port: int) -> None:
    async def check() -> bool:
        try:
            return await asyncio.to_thread(ask, port, "/readyz") == (200, "standby\n")
        except OSError:
            return False

    await until(check, within=60, what="the second to stand by")


async def succeeded(here: Namespace, settings: Settings, number: signal.Signals, within: float) -> float:
    """Seconds from a signal to the leader until the standby holds the Lease."""
    chosen, port = real(settings, here), free_port()
    words = ("operator", "--kubeconfig", str(here.cluster.kubeconfig), "--health-port", str(port))
    with operator_process(here.cluster.kubeconfig, chosen, "first") as first:
        await leading(here, "first")
        with partita_process(chosen, *words):
            await standing_by(port)
            first.send_signal(number)
            begun = time.monotonic()

            async def taken() -> bool:
                return await holder(here) not in ("", "first")

            await until(taken, within=within, what=f"the standby to lead after {number.name}")
            seconds = time.monotonic() - begun
            await leading(here, await holder(here))
    return seconds


async def test_a_killed_leader_is_succeeded_within_20_s(here: Namespace, settings: Settings) -> None:
    seconds = await succeeded(here, settings, signal.SIGKILL, KILLED_SECONDS)
    print(f"led again {seconds:.1f} s after kill -9")


async def test_a_stopped_leader_is_succeeded_within_3_s(here: Namespace, settings: Settings) -> None:
    seconds = await succeeded(here, settings, signal.SIGTERM, STOPPED_SECONDS)
    print(f"led again {seconds:.1f} s after SIGTERM")


async def test_leadership_is_given_up_12_s_into_a_frozen_api_server(
    here: Namespace, settings: Settings, tmp_path: Path
) -> None:
    port = free_port()
    async with wire(here.cluster, tmp_path) as line:
        words = ("operator", "--kubeconfig", str(line.kubeconfig), "--health-port", str(port))
        with partita_process(real(settings, here), *words) as process:
            leader = (await here.engine_until(lambda status: bool(status.get("leader")), "led"))["leader"]
            line.freeze()
            begun = time.monotonic()

            async def given_up() -> bool:
                return (await asyncio.to_thread(ask, port, "/healthz"))[1] != "leader\n"

            await until(given_up, within=FROZEN_SECONDS, what="leadership to be given up")
            print(f"given up {time.monotonic() - begun:.1f} s into a frozen API server")
            assert await asyncio.to_thread(ask, port, "/livez") == (200, "ok\n")
            assert (await asyncio.to_thread(ask, port, "/readyz"))[0] == 503
            line.mend()
            await leading(here, f"{leader}-2")
            assert process.poll() is None
