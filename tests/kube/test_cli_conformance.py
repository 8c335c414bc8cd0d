"""The command line shows and does the same over the database as over the cluster: one scenario, the same records."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from partita.cli.backend import RunQuery, RunTotal
from partita.cli.database import DatabaseBackend
from partita.cli.follow import follow
from partita.domain.errors import ConflictError, InvalidError, NotFoundError, TimedOutError
from partita.kube.resources import RUNS
from partita.settings import Settings
from tests.kube.backends import Place, begun, on_cluster, on_database, told
from tests.kube.operated import Namespace, definition, run, task

ASK = {"name": "ask", "waitForEvent": {"name": "answer", "schema": {"type": "object", "required": ["ok"]}}}
APPROVE = definition(
    "approve",
    [task("first", input={"n": 1}), {**ASK, "dependsOn": ["first"]}],
    output={"ok": "${nodes.ask.output.ok}"},
)
TIMERS = definition("timers", [{"name": "nap", "wait": {"duration": "1h"}}, ASK, {**ASK, "name": "again"}])


@pytest.fixture(params=["database", "cluster"])
async def place(request: pytest.FixtureRequest, operator_settings: Settings, here: Namespace) -> AsyncIterator[Place]:
    """One of the two backends; neither has anything in it yet."""
    opened = (
        on_database(operator_settings, here.name)
        if request.param == "database"
        else on_cluster(operator_settings, here)
    )
    async with opened as place:
        yield place


async def test_from_submit_to_succeeded(place: Place) -> None:
    one = await place.start(APPROVE, run("one", "approve"))
    waiting = await place.waiting(one)
    assert told(waiting) == {
        "definition": "approve",
        "version": 1,
        "phase": "Running",
        "progress": "1/2",
        "waiting": "event answer (ask)",
        "message": "",
        "finished": False,
        "nodes": [("ask", "Waiting", 0, "event answer (ask)"), ("first", "Completed", 1, "")],
        "output": None,
        "error": None,
    }
    assert await place.backend.signal(place.namespace, one, "answer", {"ok": 1}, "s1", "me") == "Consumed"
    *_, last = [seen async for seen in follow(place.backend, place.namespace, one, timeout_seconds=30)]
    assert told(last) == {
        **told(waiting),
        "phase": "Succeeded",
        "progress": "2/2",
        "waiting": "",
        "finished": True,
        "nodes": [("ask", "Completed", 0, ""), ("first", "Completed", 1, "")],
        "output": {"ok": 1},
    }
    assert await place.get(last.run.id) == await place.get(one)


async def test_lists(place: Place) -> None:
    first = await place.start(APPROVE, run("one", "approve"))
    second = await place.start(TIMERS, run("two", "timers"))
    await place.waiting(first)
    await place.waiting(second)
    assert await listed(place) == [("timers", "Running", "3"), ("approve", "Running", "2")]
    assert await listed(place, definition="approve") == [("approve", "Running", "2")]
    assert await listed(place, phases=("Succeeded",)) == []
    assert await listed(place, phases=("Running", "Failed"), limit=1) == [("timers", "Running", "3")]
    assert await listed(place, namespace="elsewhere") == []
    for phases, count in (((), 2), (("Succeeded",), 0), (("Running", "Failed"), 2)):
        query = RunQuery(namespace=place.namespace, phases=phases, limit=1)
        assert await place.backend.count(query) == RunTotal(count=count, exact=True)
    page = await place.backend.list(RunQuery(namespace=place.namespace))
    assert [run for run in page.runs if run.definition == "approve"] == [(await place.get(first)).run]
    assert [run for run in page.runs if run.definition == "timers"] == [(await place.get(second)).run]


async def listed(place: Place, **fields: Any) -> list[tuple[str, str, str]]:
    query = RunQuery(**{"namespace": place.namespace, **fields})
    page = await place.backend.list(query)
    return [(run.definition, run.phase, run.progress.partition("/")[2]) for run in page.runs]


async def test_several_waits_are_told_in_one_order(place: Place) -> None:
    one = await place.start(TIMERS, run("one", "timers"))
    waiting = await place.until(one, lambda detail: len(begun(detail)) == 3, "begun")
    assert waiting.run.waiting == "event answer (again), event answer (ask) and 1 more"
    nap = next(node for node in waiting.nodes if node.name == "nap")
    assert re.fullmatch(r"timer nap until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", nap.message)


async def test_suspend_and_resume(place: Place) -> None:
    one = await place.start(APPROVE, run("one", "approve"))
    await place.waiting(one)
    assert await place.backend.suspend(place.namespace, one, suspended=True)
    suspended = await place.phase(one, "Suspended")
    assert suspended.run.waiting == "resume"
    assert await place.backend.suspend(place.namespace, one, suspended=False)
    resumed = await place.phase(one, "Running")
    assert resumed.run.waiting == "event answer (ask)"


async def test_a_control_that_the_spec_has_already_still_takes_effect(
    operator_settings: Settings, here: Namespace
) -> None:
    """The run was changed through the database: the object's spec says what was asked for before."""
    async with on_cluster(operator_settings, here) as place, await DatabaseBackend.open(operator_settings) as database:
        one = await place.start(APPROVE, run("one", "approve"))
        waiting = await place.waiting(one)
        for suspended, phase, other in ((True, "Suspended", "Running"), (False, "Running", "Suspended")):
            assert await place.backend.suspend(here.name, one, suspended=suspended)
            await place.phase(one, phase)
            await database.suspend("", waiting.run.id, suspended=not suspended)
            await place.phase(one, other)
            assert (await here.get(RUNS, one))["spec"]["suspend"] is suspended
            assert await place.backend.suspend(here.name, one, suspended=suspended)
            assert (await place.get(one)).run.phase == phase


async def test_a_cancelled_run_takes_nothing_more(place: Place) -> None:
    one = await place.start(APPROVE, run("one", "approve"))
    await place.waiting(one)
    assert await place.backend.cancel(place.namespace, one, "Graceful", "no longer wanted")
    cancelled = await place.phase(one, "Cancelled")
    assert cancelled.error == {"type": "cancelled", "message": "no longer wanted", "details": None}
    assert cancelled.run.message == "cancelled: no longer wanted"
    assert await place.backend.cancel(place.namespace, one, "Graceful", "")
    with pytest.raises(ConflictError, match="RunFinished: the run has ended: Cancelled"):
        await place.backend.signal(place.namespace, one, "answer", {"ok": 1}, "s1", "me")
    with pytest.raises(ConflictError, match="RunFinished: the run has ended: Cancelled"):
        await place.backend.suspend(place.namespace, one, suspended=True)


async def test_the_same_signal_twice_counts_once(place: Place) -> None:
    one = await place.start(APPROVE, run("one", "approve"))
    await place.waiting(one)
    assert await place.backend.signal(place.namespace, one, "early", {}, "e1", "me") == "Accepted"
    assert await place.backend.signal(place.namespace, one, "answer", {"ok": 1}, "s1", "me") == "Consumed"
    await place.phase(one, "Succeeded")
    assert await place.backend.signal(place.namespace, one, "answer", {"ok": 2}, "s1", "me") == "Already sent"
    assert (await place.get(one)).output == {"ok": 1}


async def test_a_signal_that_breaks_the_schema_is_refused(place: Place) -> None:
    one = await place.start(APPROVE, run("one", "approve"))
    await place.waiting(one)
    with pytest.raises(ConflictError, match="'ok'"):
        await place.backend.signal(place.namespace, one, "answer", {"no": 1}, "s1", "me")
    assert (await place.get(one)).run.waiting == "event answer (ask)"


async def test_a_failed_run_says_why(place: Place) -> None:
    one = await place.start(definition("failing", [task("fails", "boom")]), run("one", "failing"))
    failed = await place.phase(one, "Failed")
    assert told(failed)["error"] == {"type": "fatal", "message": "no card of this name", "details": None}
    assert failed.run.message == "fatal: no card of this name"
    assert told(failed)["nodes"] == [("fails", "Failed", 1, "fatal: no card of this name")]


async def test_what_does_not_exist_is_not_found(place: Place) -> None:
    for name in ("nobody", "01890000-0000-7000-8000-000000000000"):
        with pytest.raises(NotFoundError, match=name):
            await place.get(name)
        with pytest.raises(NotFoundError, match=name):
            await place.backend.signal(place.namespace, name, "answer", None, "s1", "me")
        with pytest.raises(NotFoundError, match=name):
            await place.backend.cancel(place.namespace, name, "Graceful", "")


SHIPPING = [
    definition("asking", [ASK]),
    definition(
        "shipping",
        [
            task("each", forEach={"items": "${[1, 2, 3]}"}, input={"item": "${item}"}),
            {"name": "ship", "dependsOn": ["each"], "workflow": {"name": "asking"}, "input": {}},
            {"name": "spare", "waitForEvent": {}},
        ],
        **{"finally": {"nodes": [task("audit")]}},
    ),
]


async def test_loops_children_and_cancelled_nodes(place: Place) -> None:
    one = await place.start(*SHIPPING, run("one", "shipping"))
    waiting = await place.until(
        one, lambda detail: detail.run.waiting == "event spare, child run of ship", "waiting for both"
    )
    assert told(waiting)["nodes"] == [
        ("each", "Completed", 0, "3/3"),
        ("ship", "Waiting", 1, "child run of ship"),
        ("spare", "Waiting", 0, "event spare"),
    ]
    assert waiting.run.stage == "main"
    (ship,) = (node for node in waiting.nodes if node.name == "ship")
    assert [child.index for child in ship.children] == [None]
    with pytest.raises(NotFoundError, match=r"has no node spar \(did you mean 'spare'\?\)"):
        await place.backend.cancel_nodes(place.namespace, one, ["ship", "spar"], "")
    assert [(node.name, node.stage) for node in waiting.nodes] == [
        ("each", "main"), ("ship", "main"), ("spare", "main"), ("audit", "finally"),
    ]  # fmt: skip
    assert await place.backend.cancel_nodes(place.namespace, one, ["ship", "spare"], "")
    done = await place.phase(one, "Succeeded")
    assert told(done)["nodes"] == [
        ("audit", "Completed", 1, ""),
        ("each", "Completed", 0, "3/3"),
        ("ship", "Cancelled", 1, next(node.message for node in done.nodes if node.name == "ship")),
        ("spare", "Cancelled", 0, next(node.message for node in done.nodes if node.name == "spare")),
    ]
    assert done.run.stage == "finally"
    with pytest.raises(ConflictError, match="RunFinished: the run has ended: Succeeded"):
        await place.backend.cancel_nodes(place.namespace, one, ["spare"], "")


async def test_an_error_keeps_its_parts(place: Place) -> None:
    flow = definition("refusing", [{"name": "no", "fail": {"type": "card_declined", "message": "code: 51: no"}}])
    one = await place.start(flow, run("one", "refusing"))
    failed = await place.phase(one, "Failed")
    assert failed.error == {"type": "card_declined", "message": "code: 51: no", "details": None}


BAD = {
    "unknown kind of node": (definition("bad", [{"name": "a", "tsk": {}}]), "nodes"),
    "unknown reference": (definition("bad", [task("a", input={"x": "${nodes.b.output}"})]), "b"),
    "no workflow": ({**APPROVE, "kind": "Workflow"}, "kind"),
    "input": (run("bad", "approve", input="text"), "input"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_document_keeps_the_good_ones_from_starting(place: Place, name: str) -> None:
    bad, words = BAD[name]
    with pytest.raises(InvalidError, match=words):
        await place.backend.submit(place.namespace, [APPROVE, run("one", "approve"), bad])
    assert await listed(place) == []


async def test_a_wait_that_is_too_long_says_for_what(place: Place) -> None:
    one = await place.start(APPROVE, run("one", "approve"))
    await place.waiting(one)
    with pytest.raises(TimedOutError, match="still Running after 0 s, waiting for event answer"):
        _ = [seen async for seen in follow(place.backend, place.namespace, one, timeout_seconds=0)]
