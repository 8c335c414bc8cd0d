"""A worker whose role may not write says so and stops; one that could is patient."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest

from partita.settings import Settings
from partita.store import roles
from partita.store.database import Database
from partita.store.roles import Roles
from partita.worker import Tasks
from partita.worker.process import STUCK, serve
from tests.waiting import until
from tests.worker.hosted import Host, hosted


class Nobody:
    """No signals."""

    def subscribe(self, signals: Iterable[Any], handler: Callable[[], None]) -> None:
        """Never calls."""

    def unsubscribe(self, signals: Iterable[Any]) -> None:
        """Nothing to do."""


@pytest.fixture
async def made(database: Database, settings: Settings, let_in: Callable[[str], None]) -> AsyncIterator[Roles]:
    """Both roles, able to log in, under names of this test."""
    suffix = uuid4().hex[:8]
    names = Roles(f"coordinator_{suffix}", f"reader_{suffix}")
    await roles.apply(settings.database, names)
    for name in (names.coordinator, names.reader):
        await execute(database, f"ALTER ROLE {name} LOGIN")
        let_in(name)
    yield names
    for name in (names.coordinator, names.reader):
        await execute(database, f"DROP OWNED BY {name}; DROP ROLE {name}")


async def execute(database: Database, statement: str) -> None:
    await database.read(lambda connection: connection.execute(statement))


def as_role(settings: Settings, role: str) -> Settings:
    parts = urlsplit(settings.database.url)
    host = parts.netloc.rpartition("@")[2]
    url = urlunsplit(parts._replace(netloc=f"{role}@{host}"))
    return replace(settings, database=replace(settings.database, url=url))


async def test_a_worker_that_may_only_read_stops(
    settings: Settings, made: Roles, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(60):
        code = await serve(as_role(settings, made.reader), Tasks(), signals=Nobody())
    assert code == STUCK
    (said,) = [record.getMessage() for record in caplog.records if "this worker stops" in record.getMessage()]
    assert "the role may only read" in said
    assert "try: the URL of a role that may write, or partita migrate --roles" in said


async def test_a_worker_that_loses_its_privileges_is_patient(
    settings: Settings, made: Roles, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    app = Tasks()
    app.task("wait")(done)
    async with hosted(as_role(settings, made.coordinator), app, heartbeat_ms=100, lease_ms=3_000) as host:
        assert host.worker is not None
        await host.worker.intake.ticked()  # it has been able to work
        await execute(database, f"REVOKE INSERT, UPDATE ON ALL TABLES IN SCHEMA partita FROM {made.coordinator}")
        await until(lambda: failed(host), what="a heartbeat has failed")
        assert not host.worker.draining
        await execute(database, f"GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA partita TO {made.coordinator}")
        await host.worker.heartbeat.ticked()
        await host.deploy({"name": "only", "task": {"type": "wait"}})
        assert (await host.ended(await host.start()))["status"] == "Succeeded"
        await execute(database, f"REVOKE INSERT, UPDATE ON ALL TABLES IN SCHEMA partita FROM {made.coordinator}")
        async with asyncio.timeout(60):
            await host.worker.wait_stop_wanted()
        assert "the role lacks a privilege" in host.worker.stop_reason
        await host.worker.stop(grace=0)


async def done() -> None:
    """Nothing to do."""


async def failed(host: Host) -> bool:
    assert host.worker is not None
    return any(report.name == "heartbeat" and report.last_error for report in host.worker.report())
