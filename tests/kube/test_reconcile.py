"""Taking objects in while their definitions come and go, on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from partita.engine.engine import Engine
from partita.engine.reconcile import Installation, Outcome, Reconciler
from partita.settings import Settings
from partita.store.projection import ProjectionStore, RefusalRow

INSTALLATION = Installation(cluster_uid="cluster", engine_id="cluster/partita")
SPEC = {"nodes": [{"name": "a", "task": {"type": "x"}}]}


class DeployedMeanwhile(ProjectionStore):
    """A store before whose first refusal someone deploys the definition, and looks for runs that wait for it."""

    engine: Engine
    found: int | None = None

    async def record_refusal(self, engine_id: str, refusal: RefusalRow) -> None:
        if self.found is None:
            await self.engine.deploy("shop", "order", SPEC)
            self.found = len(await self.refusals_waiting(engine_id, "shop", "order"))
        await super().record_refusal(engine_id, refusal)


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    async with await Engine.open(settings) as engine:
        yield engine


async def never(_namespace: str, _name: str, _uid: str) -> bool:
    """No object is known to be gone."""
    return False


def body(created: str) -> dict[str, Any]:
    """A WorkflowRun as the API server sends it."""
    return {
        "apiVersion": "partita.dev/v1alpha1",
        "kind": "WorkflowRun",
        "metadata": {
            "namespace": "shop",
            "name": "first",
            "uid": "0b5fd1c3-6f0e-4f5f-9d59-0f6f8c1b8a11",
            "generation": 1,
            "creationTimestamp": created,
        },
        "spec": {"definitionRef": {"name": "order"}},
    }


async def test_a_definition_deployed_between_the_look_and_the_refusal_is_not_missed(engine: Engine) -> None:
    now = (await engine.database.clock()).isoformat()
    store = DeployedMeanwhile(engine.database)
    store.engine = engine
    taken = await Reconciler(engine, store, INSTALLATION, never).take_in(body(now))
    assert store.found == 0, "the deployment has to come before anyone is known to wait"
    assert taken is Outcome.STARTED
    assert await store.refusals_waiting(INSTALLATION.engine_id, "shop", "order") == []
    await store.close()


async def test_a_run_without_its_definition_waits(engine: Engine) -> None:
    now = (await engine.database.clock()).isoformat()
    store = ProjectionStore(engine.database)
    reconciler = Reconciler(engine, store, INSTALLATION, never)
    assert await reconciler.take_in(body(now)) is Outcome.WAITING
    assert len(await store.refusals_waiting(INSTALLATION.engine_id, "shop", "order")) == 1
    await engine.deploy("shop", "order", SPEC)
    assert await reconciler.take_in(body(now), refused=True) is Outcome.STARTED
    assert await store.refusals_waiting(INSTALLATION.engine_id, "shop", "order") == []
    await store.close()
