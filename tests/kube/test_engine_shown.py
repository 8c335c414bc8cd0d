"""The WorkflowEngine shows how full the engine is and begins with what the settings say; the metrics say the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from partita.domain.errors import InvalidError
from partita.engine_spec import LIMIT_MOST, TTL_MOST, engine_spec, engine_spec_problem
from partita.kube import overview
from partita.kube.options import OperatorOptions
from partita.kube.resources import ENGINE_NAME, ENGINES
from partita.settings import Settings
from tests.kube.operated import CHAIN, Namespace, definition, operating, run, working
from tests.kube.operated import operator_settings as settings_of
from tests.probing import ask, free_port
from tests.waiting import until


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "INTERVAL_SECONDS", 0.2)


@pytest.mark.usefixtures("quick_looks")
async def test_runs_and_queues_are_counted(here: Namespace, operator_settings: Settings) -> None:
    port = free_port()
    async with operating(here, operator_settings, OperatorOptions(health_port=port)):
        await here.create(definition("chain", CHAIN))
        for number in range(3):
            await here.create(run(f"run-{number}", "chain"))
        status = await here.engine_until(lambda status: status.get("readyTasks") == 3, "three tasks wait")
        assert status["queues"] == [{"name": "default", "ready": 3, "running": 0, "workers": 0}]
        assert (status["openRuns"], status["runningTasks"]) == (3, 0)
        columns = (await here.kubectl("get", "wfe")).splitlines()
        said = await scraped(port, "partita_ready_tasks", 3)
        async with working(operator_settings):
            for number in range(3):
                await here.phase(f"run-{number}", "Succeeded")
            await here.engine_until(lambda status: status.get("openRuns") == 0, "no run is open")
        later = await scraped(port, "partita_open_runs", 0)
    assert columns[0].split() == ["NAME", "PHASE", "LEADER", "SYNCED", "RUNS", "QUEUED", "AGE"]
    assert columns[1].split()[4:6] == ["3", "3"]
    assert said['partita_ready_tasks{queue="default"}'] == 3
    assert said["partita_database_up"] == said["partita_operator_leader"] == 1
    assert said["partita_operator_workflowruns"] == 3
    assert said['partita_operator_reconciles_total{outcome="started"}'] == 3
    assert said["partita_partition_months_ahead"] >= 1
    assert said["partita_operator_epoch"] == 1
    assert said['partita_operator_duty_up{duty="projector"}'] == 1
    assert later["partita_operator_status_writes_total"] >= 6
    assert later["partita_operator_last_sync_timestamp_seconds"] > later["process_start_time_seconds"] - 600


async def scraped(port: int, name: str, value: float) -> dict[str, float]:
    """All samples, once those of one family add up to a value."""

    async def check() -> dict[str, float]:
        text = (await asyncio.to_thread(ask, port, "/metrics"))[1]
        pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        said = {key: float(number) for key, number in pairs}
        found = [number for key, number in said.items() if key.partition("{")[0] == name]
        return said if found and sum(found) == value else {}

    return await until(check, within=40, what=f"{name} {value}")


async def test_a_new_engine_begins_with_the_spec_of_the_settings(here: Namespace, settings: Settings) -> None:
    first = settings_of(settings, here.name, engine_spec='{"paused": true, "ttlSecondsAfterFinished": 77}')
    async with operating(here, first):
        assert (await here.get(ENGINES, ENGINE_NAME))["spec"] == {"paused": True, "ttlSecondsAfterFinished": 77}
        await here.client.patch(ENGINES.path(here.name, ENGINE_NAME), {"spec": {"paused": False}})
    other = replace(first, operator=replace(first.operator, engine_spec='{"ttlSecondsAfterFinished": 5}'))
    async with operating(here, other):
        assert (await here.get(ENGINES, ENGINE_NAME))["spec"] == {"paused": False, "ttlSecondsAfterFinished": 77}
        await here.kubectl("delete", "wfe", ENGINE_NAME, "--timeout=10s")

        async def again() -> Any:
            return (await here.get(ENGINES, ENGINE_NAME)).get("spec")

        assert await until(again, what="the object to be made again") == {"ttlSecondsAfterFinished": 5}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no JSON"),
        ("[]", "is no object"),
        ('{"pause": true}', "unknown field pause"),
        ('{"paused": 1}', "paused does not fit; expected true or false"),
        ('{"ttlSecondsAfterFinished": -1}', "expected a whole number from 0"),
        ('{"concurrencyLimits": {"mine": 3}}', "expected keys that begin with shared/"),
        ('{"jobDefaults": []}', "expected an object"),
    ],
)
def test_a_mistake_is_said_at_the_start(text: str, problem: str) -> None:
    assert problem in engine_spec_problem(text)
    with pytest.raises(InvalidError, match="PARTITA_OPERATOR_ENGINE_SPEC"):
        Settings.load({"PARTITA_OPERATOR_ENGINE_SPEC": text})


def test_what_is_accepted_agrees_with_the_crd() -> None:
    crd = yaml.safe_load((Path(__file__).parents[2] / "crds" / "workflowengines.yaml").read_text("utf-8"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    good = '{"paused": true, "ttlSecondsAfterFinished": 0, "concurrencyLimits": {"shared/a": 1}, "jobDefaults": {}}'
    assert engine_spec_problem(good) == ""
    assert set(engine_spec(good)) == set(spec)
    assert spec["ttlSecondsAfterFinished"]["maximum"] == TTL_MOST
    assert spec["concurrencyLimits"]["additionalProperties"]["maximum"] == LIMIT_MOST
    assert engine_spec("") == {}
