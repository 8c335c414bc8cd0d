"""``partita doctor``: what it says of a database and of a cluster, and ``migrate --accept-newer`` beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import kopf
import orjson
import pytest

from partita.cli import doctoring
from partita.cli.doctoring import look_at_cluster, until_well
from partita.cli.exits import Exit
from partita.kube.client import KubeClient
from partita.settings import DatabaseSettings
from partita.store.database import Database
from tests import postgres
from tests.cli.commands import Cli

WELL = {
    "status": {"phase": "Running", "leader": "a", "conditions": [
        {"type": kind, "status": "True"} for kind in ("Ready", "Synced", "SchemaCurrent")
    ]}
}  # fmt: skip
KINDS = {"resources": [{"name": f"workflow{kind}s"} for kind in ("definition", "run", "engine")]}


def lease(version: int, holder: str = "a") -> dict[str, Any]:
    """A Lease in one of its versions."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 1}
    return {"metadata": {"resourceVersion": str(version)}, "spec": spec}


@asynccontextmanager
async def cluster(answers: Callable[[str], dict[str, Any]]) -> AsyncIterator[KubeClient]:
    """A client of a server that answers a path with what the function makes of it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        body = orjson.dumps(answers(path))
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with KubeClient(lambda: kopf.ConnectionInfo(server=address)) as client:
            yield client


async def found(
    monkeypatch: pytest.MonkeyPatch, *, kinds: Any = KINDS, engine: Any = WELL, renewed: bool = True, holder: str = "a"
) -> dict[str, bool]:
    """What is said of a cluster that answers so."""
    monkeypatch.setattr(doctoring, "LOOK_SECONDS", 0.01)
    looks = iter(range(1, 1_000_000))

    def answers(path: str) -> dict[str, Any]:
        if path.endswith("/workflowengines/partita"):
            return dict(engine)
        return lease(next(looks) if renewed else 1, holder) if "/leases/" in path else dict(kinds)

    async with cluster(answers) as client:
        return {finding.check: finding.ok for finding in await look_at_cluster(client, "partita-system")}


async def test_a_cluster_that_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await found(monkeypatch) == {"kinds": True, "engine": True, "leader": True}


async def test_a_kind_that_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not (await found(monkeypatch, kinds={"resources": [{"name": "workflowruns"}]}))["kinds"]


async def test_an_engine_that_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = [*WELL["status"]["conditions"][:1], {"type": "Synced", "status": "False", "message": "gone"}]
    assert not (await found(monkeypatch, engine={"status": {"conditions": conditions}}))["engine"]
    assert not (await found(monkeypatch, engine={}))["engine"]


async def test_a_lease_that_nobody_renews(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not (await found(monkeypatch, renewed=False))["leader"]
    assert not (await found(monkeypatch, holder=""))["leader"]


async def test_it_looks_again_until_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctoring, "LOOK_SECONDS", 0.01)
    answers = iter([False, False, True])

    async def look() -> list[doctoring.Finding]:
        return [doctoring.Finding("x", next(answers), "")]

    assert (await until_well(look, 60))[0].ok
    assert next(answers, None) is None


def test_a_database_that_is_well(on_database: Cli) -> None:
    answer = on_database("doctor", "--database-only", "-o", "json")
    assert answer.code == Exit.OK, answer.err
    assert [(each["check"], each["ok"]) for each in answer.json] == [("schema", True), ("months", True)]


def test_a_schema_that_is_missing(partita: Cli, empty_database_url: str) -> None:
    answer = partita("doctor", "--database-only", "--database-url", empty_database_url)
    assert answer.code == Exit.UNAVAILABLE
    assert "partita migrate" in answer.out


def test_a_cluster_that_cannot_be_found(on_database: Cli) -> None:
    answer = on_database("doctor", "-o", "json")
    assert answer.code == Exit.UNAVAILABLE
    assert {each["check"]: each["ok"] for each in answer.json} == {"schema": True, "months": True, "cluster": False}


def _newer(url: str, protocol: int | None = None) -> None:
    """Let a newer release have migrated the schema."""

    async def work() -> None:
        async with await Database.open(DatabaseSettings(url=url)) as database:
            row = "INSERT INTO partita.schema_migrations (version, name, checksum) VALUES (999, 'later', 'x')"
            await database.read(lambda connection: connection.execute(row))
            if protocol:
                demand = "UPDATE partita.engine_state SET oldest_protocol = $1"
                await database.read(lambda connection: connection.execute(demand, protocol))

    postgres.run(work())


def test_a_newer_schema_is_refused_unless_it_is_accepted(on_database: Cli, database_url: str) -> None:
    _newer(database_url)
    assert on_database("migrate").code == Exit.CONFLICT
    accepted = on_database("migrate", "--accept-newer", "-o", "json")
    assert accepted.code == Exit.OK
    assert accepted.json == {"applied": [], "partitions": [], "roles": []}
    assert "left as it is" in accepted.err


def test_a_newer_protocol_is_never_accepted(on_database: Cli, database_url: str) -> None:
    _newer(database_url, protocol=999)
    answer = on_database("migrate", "--accept-newer")
    assert answer.code == Exit.CONFLICT
    assert "protocol 999" in answer.err
