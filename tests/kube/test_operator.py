"""The operator, end to end: objects in, runs executed, statuses out."""

from __future__ import annotations

from partita.kube.resources import RUNS
from partita.settings import Settings
from tests.kube.operated import (
    APPROVAL,
    CHAIN,
    Namespace,
    condition,
    definition,
    operating,
    run,
    task,
    working,
)


async def test_a_run_succeeds_and_says_so(here: Namespace, operator_settings: Settings) -> None:
    chain = definition("chain", CHAIN, output={"n": "${nodes.third.output.echo}"})
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(chain)
        await here.accepted("chain")
        created = await here.create(run("one", "chain"))
        status = await here.phase("one", "Succeeded")
        await here.kubectl("wait", "--for=condition=Completed", "wfr/one", "--timeout=10s")
    assert status["progress"] == "3/3"
    assert status["observedGeneration"] == created["metadata"]["generation"]
    assert condition(status, "Succeeded") == "True"
    assert condition(status, "Completed") == "True"
    assert [node["state"] for node in status["nodes"]] == ["Completed"] * 3
    assert status["version"] == 1
    assert status["finishedAt"] >= status["startedAt"]
    assert "finalizers" not in (await here.get(RUNS, "one"))["metadata"]
