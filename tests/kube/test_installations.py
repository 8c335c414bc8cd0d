"""Two installations of one cluster, and namespaces that are deleted with runs in flight."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from partita.domain.errors import ConflictError
from partita.kube.operator import run_operator
from partita.kube.options import OperatorOptions
from partita.kube.resources import RUNS
from partita.settings import Settings
from partita.store import migrations, partitions
from partita.store.database import Database
from tests.kube.operated import APPROVAL, CHAIN, Namespace, definition, operating, run, working
from tests.kube.operated import operator_settings as settings_of
from tests.kube.test_faults import runs
from tests.waiting import until


@pytest.fixture
async def other(here: Namespace) -> AsyncIterator[Namespace]:
    """A second namespace."""
    name = f"other-{secrets.token_hex(4)}"
    await here.kubectl("create", "namespace", name)
    yield Namespace(here.cluster, here.client, name)
    await here.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


async def test_a_second_installation_of_one_schema_is_refused_with_both_names(
    here: Namespace, other: Namespace, settings: Settings
) -> None:
    async with operating(here, settings_of(settings, here.name)):
        options = OperatorOptions(kubeconfig=here.cluster.kubeconfig)
        with pytest.raises(ConflictError) as caught:
            await asyncio.wait_for(run_operator(settings_of(settings, other.name), options), 60)
        assert f"/{here.name}; expected " in str(caught.value)
        assert f"/{other.name}" in str(caught.value)
        await here.create(definition("approve", APPROVAL))
        await here.accepted("approve")


async def test_two_installations_in_two_schemas_keep_apart(
    here: Namespace, other: Namespace, settings: Settings, database: Database
) -> None:
    """The same names in both; resync of either must not touch what is the other's."""
    first = settings_of(settings, here.name)
    apart = replace(settings, database=replace(settings.database, schema="second"))
    await migrations.migrate(apart.database)
    await partitions.ensure(apart)
    second = settings_of(apart, other.name)
    async with operating(here, first), operating(other, second), working(first), working(second):
        for place in (here, other):
            await place.create(definition("approve", APPROVAL))
            await place.create(definition("chain", CHAIN))
            await place.create(run("one", "approve"))
            await place.create(run("short", "chain"))
        for place in (here, other):
            await place.phase("one", "Running")
            await place.phase("short", "Succeeded")
        await here.kubectl("delete", "wfr", "one", "--timeout=20s")

        async def cancelled() -> bool:
            return sorted(state for _, state in await runs(database)) == ["Cancelled", "Succeeded"]

        await until(cancelled, within=30, what="the first one's run to be cancelled")
        text = "SELECT status FROM second.workflow_runs ORDER BY status"
        states = await database.read(lambda connection: connection.fetch(text))
        assert [row["status"] for row in states] == ["Running", "Succeeded"]
        await other.signal("one", "a1")
        await other.phase("one", "Succeeded")


async def test_a_namespace_is_deleted_with_runs_in_flight(
    here: Namespace, other: Namespace, settings: Settings, database: Database
) -> None:
    """Nothing of ours holds it up, with the operator up; its runs are cancelled, those of others are not."""
    both = settings_of(settings, here.name, watch_namespaces=(here.name, other.name))
    async with operating(here, both):
        for place in (here, other):
            await place.create(definition("approve", APPROVAL))
            await place.create(run("one", "approve"))
            await place.phase("one", "Running")
        await here.kubectl("delete", "namespace", other.name, "--timeout=50s")

        async def settled() -> bool:
            return sorted(state for _, state in await runs(database)) == ["Cancelled", "Running"]

        await until(settled, within=60, what="the run of the deleted namespace to be cancelled")
        await here.signal("one", "a1")
        await here.phase("one", "Succeeded")


async def test_a_namespace_is_deleted_while_the_operator_is_away(
    here: Namespace, other: Namespace, settings: Settings, database: Database
) -> None:
    both = settings_of(settings, here.name, watch_namespaces=(here.name, other.name))
    async with operating(here, both):
        await other.create(definition("approve", APPROVAL))
        await other.create(run("one", "approve"))
        await other.phase("one", "Running")
    await here.kubectl("delete", "namespace", other.name, "--timeout=50s")
    assert not await other.get(RUNS, "one")
    async with operating(here, both):

        async def settled() -> bool:
            return [state for _, state in await runs(database)] == ["Cancelled"]

        await until(settled, within=60, what="resync to cancel the run of the deleted namespace")
