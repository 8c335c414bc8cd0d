"""Children, loops, undo, finally and the cancelling of nodes through objects, as people see and steer them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from partita.cli.backend import RunDetail, RunQuery
from partita.cli.database import DatabaseBackend
from partita.settings import Settings
from tests.kube.operated import Namespace, Object, condition, definition, operating, run, task, working
from tests.waiting import until

ASK: Object = {"name": "ask", "waitForEvent": {"name": "answer"}}
LINE: Object = {
    "name": "packLine",
    "nodes": [task("pick", input={"line": "${input.line}"}), {**ASK, "dependsOn": ["pick"]}],
    "output": {"line": "${input.line}"},
}
EVERYTHING = definition(
    "parcel",
    [
        task("reserve", input={"number": 1}, undo={"task": {"type": "echo"}, "input": {"id": "${output.echo.number}"}}),
        {
            "name": "pack",
            "dependsOn": ["reserve"],
            "forEach": {"items": "${[1, 2]}", "as": "line"},
            "workflow": {"subflow": "packLine"},
            "input": {"line": "${line}"},
        },
        {"name": "refuse", "dependsOn": ["pack"], "fail": {"type": "refused", "message": "no more"}},
    ],
    subflows=[LINE],
    **{"finally": {"nodes": [task("audit", input={"status": "${run.status}"})]}},
)
CHILD = definition("asking", [ASK])
PARENT = definition("parent", [{"name": "ship", "workflow": {"name": "asking"}, "input": {}}])


@pytest.fixture
async def here(here: Namespace, operator_settings: Settings) -> AsyncIterator[Namespace]:
    """The namespace, with an operator and a worker."""
    async with operating(here, operator_settings), working(operator_settings):
        yield here


@asynccontextmanager
async def records(settings: Settings) -> AsyncIterator[DatabaseBackend]:
    """What the database says about the same runs."""
    async with await DatabaseBackend.open(settings) as backend:
        yield backend


async def begin(here: Namespace, *objects: Object) -> None:
    """Create definitions, and then a run."""
    for each in objects:
        await here.create(each)
        if each["kind"] == "WorkflowDefinition":
            await here.accepted(each["metadata"]["name"])


def nodes(status: Object) -> dict[str, Object]:
    return {node["name"]: node for node in status.get("nodes") or ()}


def waits_for(words: str) -> Any:
    return lambda status: status.get("waitingFor") == words


async def children(backend: DatabaseBackend, parent: str, phase: str, count: int) -> list[str]:
    """Ids of the children of a run, once so many are in this phase."""

    async def found() -> list[str]:
        page = await backend.list(RunQuery(parent=parent))
        ids = [each.id for each in page.runs if each.phase == phase]
        return ids if len(ids) == count else []

    return await until(found, within=30, what=f"{count} children {phase}") or []


async def test_a_run_of_everything(here: Namespace, operator_settings: Settings) -> None:
    await begin(here, EVERYTHING, run("one", "parcel"))
    asked = "event answer (ask, in a child run), event answer (ask, in a child run) and 1 more"
    status = await here.run_until("one", waits_for(asked), "asking")
    assert (status["phase"], status["stage"], status["progress"]) == ("Running", "main", "1/4")
    assert nodes(status)["pack"] == {"name": "pack", "state": "Waiting", "attempt": 0, "message": "0/2 · 2 running"}
    await here.signal("one", "s1", "answer")
    await here.signal("one", "s2", "answer")
    failed = await here.phase("one", "Failed")
    assert {signal["id"]: signal["state"] for signal in failed["signals"]} == {"s1": "Consumed", "s2": "Consumed"}
    assert (failed["stage"], failed["progress"]) == ("finally", "4/4")
    assert failed["error"] == {"type": "refused", "message": "no more"}
    assert (failed["message"], condition(failed, "Succeeded", "reason")) == ("refused: no more", "NodeFailed")
    shown = {name: (node["state"], node.get("message", "")) for name, node in nodes(failed).items()}
    assert shown == {
        "reserve": ("Completed", ""),
        "pack": ("Completed", "2/2"),
        "refuse": ("Failed", "refused: no more"),
        "reserve~undo": ("Completed", ""),
        "audit": ("Completed", ""),
    }
    async with records(operator_settings) as backend:
        assert len(await children(backend, failed["runId"], "Succeeded", 2)) == 2
        audit = await backend.get("", failed["runId"])
        assert [node.stage for node in audit.nodes] == ["main"] * 3 + ["undo", "finally"]


async def test_nodes_are_cancelled_each_once(here: Namespace) -> None:
    flow = [
        {"name": "first", "waitForEvent": {}},
        {"name": "second", "waitForEvent": {}},
        task("after", dependsOn=["first"]),
    ]
    await begin(here, definition("two", flow), run("one", "two"))
    await here.run_until("one", waits_for("event first, event second"), "waiting")
    await here.kubectl("patch", "wfr", "one", "--type=merge", "-p", json.dumps({"spec": {"cancelNodes": ["first"]}}))
    status = await here.run_until("one", waits_for("event second"), "waiting for the other")
    assert nodes(status)["first"]["state"] == "Cancelled"
    assert nodes(status)["first"]["message"] == "cancelled: the node was cancelled"
    assert nodes(status)["after"]["state"] == "Skipped"
    assert condition(status, "Accepted", "reason") == "Started"
    await here.patch_run("one", {"cancelNodes": ["first", "nobody"]})
    await here.run_until("one", lambda status: status["observedGeneration"] == 3, "observed")
    await here.signal("one", "s1", "second")
    assert (await here.phase("one", "Succeeded", "Failed"))["phase"] == "Succeeded"


async def test_names_to_cancel_from_the_start(here: Namespace) -> None:
    flow = [{"name": "first", "waitForEvent": {}}, {"name": "second", "compute": {"x": 1}}]
    await begin(here, definition("two", flow), run("one", "two", cancelNodes=["first"]))
    status = await here.phase("one", "Succeeded", "Failed")
    assert (status["phase"], nodes(status)["first"]["state"]) == ("Succeeded", "Cancelled")


async def test_a_child_is_named_and_suspended_with_its_parent(here: Namespace, operator_settings: Settings) -> None:
    await begin(here, CHILD, PARENT, run("one", "parent"))
    status = await here.run_until("one", waits_for("child run of ship"), "waiting")
    child = nodes(status)["ship"]["runId"]
    async with records(operator_settings) as backend:
        await here.patch_run("one", {"suspend": True})
        await here.phase("one", "Suspended")
        assert await children(backend, status["runId"], "Suspended", 1) == [child]
        await here.patch_run("one", {"suspend": False})
        await here.phase("one", "Running")
        assert await children(backend, status["runId"], "Running", 1) == [child]
        assert await backend.signal("", child, "answer", {"ok": 1}, "s1", "me") == "Consumed"
    await here.phase("one", "Succeeded")


async def test_a_child_s_error_is_its_parent_s(here: Namespace) -> None:
    fails = definition("asking", [{"name": "no", "fail": {"type": "refused", "message": "not today"}}])
    await begin(here, fails, PARENT, run("one", "parent"))
    status = await here.phase("one", "Failed")
    assert status["error"] == {"type": "refused", "message": "not today"}


@pytest.mark.parametrize("how", ["delete", "cancel"])
async def test_the_end_of_a_run_is_that_of_its_children(here: Namespace, operator_settings: Settings, how: str) -> None:
    await begin(here, CHILD, PARENT, run("one", "parent"))
    status = await here.run_until("one", waits_for("child run of ship"), "waiting")
    async with records(operator_settings) as backend:
        if how == "delete":
            await here.kubectl("delete", "wfr", "one")
        else:
            await here.patch_run("one", {"cancel": {}})
        assert await children(backend, status["runId"], "Cancelled", 1) == [nodes(status)["ship"]["runId"]]

        async def ended() -> RunDetail | None:
            detail = await backend.get("", status["runId"])
            return detail if detail.run.phase == "Cancelled" else None

        assert await until(ended, within=30, what="the parent cancelled")


async def test_a_large_loop_is_one_small_node(here: Namespace) -> None:
    items = 2_000
    each: Object = {
        "name": "each",
        "forEach": {"items": f"${{range({items})}}", "maxParallel": 500},
        "task": {"type": "echo"},
        "input": {"text": "${'x'.matches('x') ? 'some text that is not so short' : ''}"},
    }
    await begin(here, definition("large", [each], output={"count": "${nodes.each.output.size()}"}), run("one", "large"))
    largest = 0

    def measured(status: Object) -> bool:
        nonlocal largest
        largest = max(largest, len(orjson.dumps(status)))
        return status.get("phase") == "Succeeded"

    status = await here.run_until("one", measured, "Succeeded", within=120)
    assert nodes(status) == {
        "each": {"name": "each", "state": "Completed", "attempt": 0, "message": f"{items}/{items}"}
    }
    assert (status["output"], status["progress"]) == ({"count": items}, "1/1")
    assert largest < 2_500
