"""What people set in the WorkflowEngine: the default time to live holds, and what has no effect is said."""

from __future__ import annotations

from typing import Any

import pytest

from partita.kube.resources import ENGINE_NAME, ENGINES, RUNS
from partita.settings import Settings
from tests.kube.operated import APPROVAL, Namespace, condition, definition, operating, run
from tests.waiting import until


async def set_engine(here: Namespace, **spec: Any) -> None:
    """Merge into the spec of the WorkflowEngine."""
    await here.client.patch(ENGINES.path(here.name, ENGINE_NAME), {"spec": spec})


async def test_fields_without_an_effect_are_named(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await set_engine(here, concurrencyLimits={"shared/license": 3}, jobDefaults={"spec": {}})
        status = await here.engine_until(lambda status: reason(status) == "FieldNotSupported", "saying so")
        message = condition(status, "Accepted", "message")
        assert message == "spec.concurrencyLimits, spec.jobDefaults: not supported by this version, no effect"
        assert status["observedGeneration"] == 2
        await set_engine(here, concurrencyLimits=None, jobDefaults=None)
        await here.engine_until(lambda status: reason(status) == "Accepted", "accepted")


def reason(status: dict[str, Any]) -> str:
    return condition(status, "Accepted", "reason")


@pytest.mark.usefixtures("quick_deletion")
async def test_its_time_to_live_holds_for_runs_that_name_none(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("own", "approve", ttlSecondsAfterFinished=5000, cancel={}))
        await here.create(run("silent", "approve", cancel={}))
        for name in ("own", "silent"):
            await here.phase(name, "Cancelled")
        await set_engine(here, ttlSecondsAfterFinished=0)

        async def gone() -> bool:
            return not await here.get(RUNS, "silent")

        await until(gone, within=40, what="the object to be deleted")
        assert await here.get(RUNS, "own")


@pytest.mark.usefixtures("quick_deletion")
async def test_its_time_to_live_is_known_to_a_new_leader(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await set_engine(here, ttlSecondsAfterFinished=0)
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("silent", "approve", cancel={}))

        async def gone() -> bool:
            return not await here.get(RUNS, "silent")

        await until(gone, within=40, what="the object to be deleted")
