"""Fixtures that every test folder shares."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import cast

import pytest

from partita.settings import DatabaseSettings, Settings
from partita.store.database import Database
from partita.store.embedded import Server
from tests import pgbouncer, postgres
from tests.pgbouncer import PgBouncer
from tests.postgres import Cluster


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """The PostgreSQL server of this run, shared with other workers and runs."""
    with postgres.cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def postgres_template(postgres_cluster: Cluster) -> str:
    """Name of the migrated database with partitions."""
    return postgres.template(postgres_cluster)


@pytest.fixture
def database_url(postgres_cluster: Cluster, postgres_template: str) -> Iterator[str]:
    """URL of a fresh, migrated database with partitions for this month and the next ones."""
    with postgres.fresh_database(postgres_cluster, postgres_template) as url:
        yield url


@pytest.fixture
def empty_database_url(postgres_cluster: Cluster) -> Iterator[str]:
    """URL of a fresh database without a schema."""
    with postgres.fresh_database(postgres_cluster, "template0") as url:
        yield url


@pytest.fixture(scope="session")
def bouncer(postgres_cluster: Cluster) -> Iterator[PgBouncer]:
    """PgBouncer in front of the server of this run."""
    with pgbouncer.before(postgres_cluster.admin_url) as process:
        yield process


@pytest.fixture
def pooled(bouncer: PgBouncer, database_url: str) -> Settings:
    """Default settings on a fresh database behind PgBouncer."""
    url = bouncer.url(postgres.database_of(database_url))
    return Settings(database=DatabaseSettings(url=url, migrations_url=database_url, pooled=True))


@pytest.fixture
def direct(database_url: str) -> Settings:
    """Default settings on a fresh database, for what needs a session of its own."""
    return Settings(database=DatabaseSettings(url=database_url))


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    """Default settings on a fresh database, behind PgBouncer when the environment says so."""
    return cast("Settings", request.getfixturevalue("pooled" if pgbouncer.chosen() else "direct"))


@pytest.fixture
def let_in(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Lets a role of the server log in by way of ``settings``."""
    if not pgbouncer.chosen():
        return lambda _: None
    return cast("PgBouncer", request.getfixturevalue("bouncer")).let_in


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    """A fresh database, opened."""
    opened = await Database.open(settings.database)
    yield opened
    await opened.close()


@pytest.fixture
def restartable_server() -> Iterator[Server]:
    """A server of this test alone, with a migrated database ``partita``; the test may stop, crash and start it."""
    with postgres.own_server() as server:
        postgres.run(postgres.create_prepared(server, "partita"))
        yield server
