"""An operator that is older than its schema does not work on it, whether it starts so or is overtaken."""

from __future__ import annotations

import asyncio

import pytest

from partita.domain.errors import OutdatedError
from partita.kube.operator import run_operator
from partita.kube.options import OperatorOptions
from partita.settings import Settings
from partita.store.database import Database
from tests.kube.operated import CHAIN, Namespace, definition, leading, run


async def demand(database: Database) -> None:
    """What the migration of a later version does."""
    await database.read(lambda c: c.execute("UPDATE partita.engine_state SET oldest_protocol = 99"))


async def test_one_that_starts_says_so_and_ends(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    await demand(database)
    with pytest.raises(OutdatedError, match=r"demands engine protocol 99; expected at most \d+.*newer release"):
        await run_operator(operator_settings, OperatorOptions(kubeconfig=here.cluster.kubeconfig))
    owner = await database.read(lambda c: c.fetchval("SELECT engine_id FROM partita.engine_state"))
    assert owner is None, "it has not become the owner"


async def test_one_that_is_overtaken_ends_before_it_starts_a_run(
    here: Namespace, operator_settings: Settings, database: Database
) -> None:
    options = OperatorOptions(kubeconfig=here.cluster.kubeconfig)
    task = asyncio.create_task(run_operator(operator_settings, options))
    await leading(here, options.identity, task)
    await here.create(definition("chain", CHAIN))
    await here.accepted("chain")
    await demand(database)
    await here.create(run("late", "chain"))
    with pytest.raises(OutdatedError, match="demands engine protocol 99"):
        await asyncio.wait_for(task, 60)
    assert await database.read(lambda c: c.fetchval("SELECT count(*) FROM partita.workflow_runs")) == 0
