"""Events as people see them: ``kubectl describe`` on a real API server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from partita.kube.resources import ENGINE_NAME, EVENTS, RUNS
from partita.settings import Settings
from tests.kube.operated import APPROVAL, CHAIN, Namespace, Object, definition, operating, run, task, working
from tests.kube.operated import operator_settings as settings_of
from tests.waiting import until


async def events_of(here: Namespace, name: str) -> list[Object]:
    """Events about objects of this name, oldest first."""
    body = await here.client.get(EVENTS.path(here.name))
    found = [item for item in body["items"] if item["involvedObject"]["name"] == name]
    return sorted(found, key=lambda item: (item["firstTimestamp"], item["metadata"]["resourceVersion"]))


async def told(here: Namespace, name: str, *reasons: str) -> list[Object]:
    """The events about an object once all of these are there."""

    async def check() -> list[Object]:
        found = await events_of(here, name)
        return found if {*reasons} <= {each["reason"] for each in found} else []

    return await until(check, within=40, what=f"{name}: {reasons}")


def soon(settings: Settings, here: Namespace, **changes: Any) -> Settings:
    return settings_of(settings, here.name, events_after_ms=300, **changes)


async def test_a_run_its_definition_and_the_engine_are_described(here: Namespace, settings: Settings) -> None:
    async with operating(here, soon(settings, here)):
        await here.create(definition("approve", APPROVAL))
        await told(here, "approve", "Accepted")
        await here.create(run("one", "approve"))
        await told(here, "one", "Started", "Waiting")
        await here.signal("one", "a1")
        events = await told(here, "one", "Succeeded")
        described = await here.kubectl("describe", "wfr", "one")
        engine = await told(here, ENGINE_NAME, "LeaderChanged")
    assert [event["reason"] for event in events] == ["Started", "Waiting", "Succeeded"]
    lines = described[described.index("Events:") :]
    assert "waits for event approval" in lines
    assert "partita" in lines
    assert len(engine) == 1
    assert {event["involvedObject"]["uid"] for event in events} == {(await here.get(RUNS, "one"))["metadata"]["uid"]}


async def test_refusals_and_failures_tell_why(here: Namespace, settings: Settings) -> None:
    async with operating(here, soon(settings, here)), working(settings):
        await here.create(run("early", "later"))
        waiting = await told(here, "early", "DefinitionNotFound")
        await here.create(definition("bad", [task("a", dependsOn=["b"]), task("b", dependsOn=["a"])]))
        refused = await told(here, "bad", "Refused")
        fails = {"name": "stop", "fail": {"type": "no_stock", "message": "nothing left"}}
        await here.create(definition("fails", [fails]))
        await here.create(run("failing", "fails"))
        failed = await told(here, "failing", "Failed")
    assert {event["type"] for event in (*waiting, *refused, *failed)} == {"Warning"}
    assert failed[-1]["message"] == "no_stock: nothing left"
    assert [event["reason"] for event in failed] == ["Failed"]
    assert "no version is deployed" in refused[-1]["message"]


async def test_a_thousand_nodes_make_a_handful(here: Namespace, settings: Settings) -> None:
    nodes: list[Object] = [{"name": f"n{number}", "compute": {"n": number}} for number in range(999)]
    nodes.append({"name": "go", "waitForEvent": {}})
    async with operating(here, soon(settings, here)):
        await here.create(definition("broad", nodes))
        await here.create(run("one", "broad"))
        await told(here, "one", "Started", "Waiting")
        await here.signal("one", "s1", name="go")
        events = await told(here, "one", "Succeeded")
    assert [event["reason"] for event in events] == ["Started", "Waiting", "Succeeded"]
    assert events[-1]["message"].startswith("1000 of 1000 nodes settled in ")


async def test_short_runs_make_none_and_a_second_operator_tells_nothing_twice(
    here: Namespace, settings: Settings
) -> None:
    quiet = settings_of(settings, here.name)
    async with working(quiet):
        async with operating(here, soon(settings, here)):
            await here.create(definition("approve", APPROVAL))
            await here.create(run("slow", "approve"))
            before = await told(here, "slow", "Started", "Waiting")
        async with operating(here, replace(quiet, operator=replace(quiet.operator, events_after_ms=60_000))):
            await here.create(definition("chain", CHAIN))
            for number in range(5):
                await here.create(run(f"short-{number}", "chain"))
            for number in range(5):
                await here.phase(f"short-{number}", "Succeeded")
            await here.create(run("marker", "nothing"))
            await here.create(definition("last", CHAIN))
            await told(here, "last", "Accepted")  # news is written in order: what comes before it has been
            after = await events_of(here, "slow")
            short = [event for number in range(5) for event in await events_of(here, f"short-{number}")]
    assert [(each["reason"], each["count"]) for each in after] == [(each["reason"], each["count"]) for each in before]
    assert short == []
