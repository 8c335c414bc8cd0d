"""Whether an installation works: what a person, `helm test` and a waiting worker ask before anything else.

Invariant: nothing is changed and no run is started; every check says what it found, also when an earlier one failed.
That a leader lives is seen by its Lease being renewed while we look, so that no clocks are compared. The trade-off is
that a look takes a few seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from partita.domain.errors import NotFoundError, PartitaError, UnavailableError
from partita.engine.requests import PROTOCOL
from partita.kube.client import KubeClient
from partita.kube.resources import DEFINITIONS, ENGINE_NAME, ENGINES, LEASE_NAME, LEASES, RUNS
from partita.settings import Settings
from partita.store import migrations, partitions
from partita.store.database import Database

PATIENCE_MS: Final = 2_000
LOOK_SECONDS: Final = 1.0
CONDITIONS: Final = ("Ready", "Synced", "SchemaCurrent")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; ``words`` say what is there, or what is wrong."""

    check: str
    ok: bool
    words: str


async def look_at_database(settings: Settings) -> list[Finding]:
    """The database answers, has this version's schema, and has months ahead."""
    patient = replace(settings.database, patience_ms=min(PATIENCE_MS, settings.database.patience_ms))
    async with await Database.open(patient) as database:
        found = [await _finding("schema", _schema(database))]
        return [*found, await _finding("months", _months(database))]


async def look_at_cluster(client: KubeClient, namespace: str) -> list[Finding]:
    """The kinds are served, the WorkflowEngine is well, and a leader renews its Lease."""
    return [
        await _finding("kinds", _kinds(client)),
        await _finding("engine", _engine(client, namespace)),
        await _finding("leader", _leader(client, namespace)),
    ]


async def until_well(look: Callable[[], Awaitable[list[Finding]]], seconds: float) -> list[Finding]:
    """Look again until everything is well, for as many seconds; the last findings."""
    deadline = time.monotonic() + seconds
    while True:
        found = await look()
        if all(finding.ok for finding in found) or time.monotonic() >= deadline:
            return found
        await asyncio.sleep(LOOK_SECONDS)


async def _finding(check: str, words: Awaitable[str]) -> Finding:
    try:
        return Finding(check, True, await words)
    except PartitaError as error:
        return Finding(check, False, str(error))


async def _schema(database: Database) -> str:
    await migrations.require_current(database)
    await migrations.require_protocol(database, PROTOCOL)
    return f"{database.settings.schema} is current"


async def _months(database: Database) -> str:
    ahead = (await partitions.status(database)).ahead
    if ahead < 1:
        raise UnavailableError(
            "database: no month ahead; runs cannot start next month", hint="partita partitions ensure"
        )
    return f"{ahead} ahead"


async def _kinds(client: KubeClient) -> str:
    served = {each["name"] for each in (await client.get(RUNS.base)).get("resources") or ()}
    missing = [kind.plural for kind in (DEFINITIONS, RUNS, ENGINES) if kind.plural not in served]
    if missing:
        raise NotFoundError(f"kubernetes: {', '.join(missing)}: not served; expected the CRDs of this version")
    return "all are served"


async def _engine(client: KubeClient, namespace: str) -> str:
    body = await client.get(ENGINES.path(namespace, ENGINE_NAME))
    status = body.get("status") or {}
    states = {each["type"]: each for each in status.get("conditions") or ()}
    for name in CONDITIONS:
        state = states.get(name) or {}
        if state.get("status") != "True":
            words = state.get("message") or state.get("reason") or "unknown"
            raise UnavailableError(f"WorkflowEngine {namespace}/{ENGINE_NAME}: {name} is not True: {words}")
    return f"{status.get('phase', '')}, led by {status.get('leader', '')}"


async def _leader(client: KubeClient, namespace: str) -> str:
    """The holder, once it is seen to renew; raises UnavailableError when it does not within the Lease's own time."""
    path = LEASES.path(namespace, LEASE_NAME)
    first = await client.get(path)
    holder, seconds = _holder(first), (first.get("spec") or {}).get("leaseDurationSeconds") or 15
    deadline = time.monotonic() + seconds
    while holder and time.monotonic() < deadline:
        await asyncio.sleep(LOOK_SECONDS)
        now = await client.get(path)
        if _holder(now) and now["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]:
            return _holder(now)
    raise UnavailableError(f"Lease {namespace}/{LEASE_NAME}: nobody renews it; expected an operator that leads")


def _holder(lease: dict[str, Any]) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
