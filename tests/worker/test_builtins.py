"""Built-in types in a worker with a real engine: served without registration, recorded like any task."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from aiohttp import web

from partita.domain.payload import Json
from partita.engine.requests import StartRequest
from partita.settings import Settings
from partita.worker import TaskContext, Tasks
from partita.worker.builtins import TYPES
from partita.worker.builtins.signal import SignalTask
from tests.worker.hosted import NAMESPACE, Host, hosted
from tests.worker.support import claimed
from tests.worker.web import LOOPBACK, Site, fails, serving

WAIT = {
    "name": "approval",
    "waitForEvent": {"schema": {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}},
}
SIGNALS = "SELECT id, name, sender FROM partita.workflow_events WHERE run_id = $1"


@pytest.fixture
def local(settings: Settings) -> Settings:
    """Settings that allow loopback."""
    return replace(settings, worker_http=LOOPBACK)


async def call(host: Host, type: str, value: Json, **node: Json) -> dict[str, Any]:  # noqa: A002 - the SDK's word
    """How a run of one task ended."""
    await host.deploy(
        {"name": "only", "task": {"type": type}, "input": value, **node},
        name="calls",
        output={"value": "${nodes.only.output}"},
    )
    run_id = await host.start(name="calls")
    ended = await host.ended(run_id)
    output = orjson.loads(ended["output_json"] or "{}").get("value")
    error = orjson.loads(ended["error_json"] or "{}")
    return {"run": run_id, "status": ended["status"], "output": output, "error": error}


def test_nobody_can_register_a_built_in_type() -> None:
    for name in TYPES:
        with pytest.raises(ValueError, match="is built in; expected a name that does not begin with partita"):
            Tasks().task(name)


async def test_a_request_is_recorded_like_any_task(local: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "partita.task")

    async def answer(request: web.Request) -> web.Response:
        status = 200 if "ok" in request.query else 404
        return web.json_response({"key": request.headers["Idempotency-Key"]}, status=status)

    async with serving(answer) as site, hosted(local, Tasks()) as host:
        good = await call(host, "partita.http", {"url": site.url("/?ok"), "method": "POST"})
        assert (good["status"], good["output"]["status"]) == ("Succeeded", 200)
        assert good["output"]["body"] == {"key": f"{good['run']}/0/only/0"}
        bad = await call(host, "partita.http", {"url": site.url(), "method": "POST"})
        assert (bad["status"], bad["error"]["type"], bad["error"]["details"]["status"]) == ("Failed", "http_404", 404)
    (said,) = [record for record in caplog.records if record.name == "partita.task.partita.http"]
    assert said.getMessage().startswith("task failed: http_404: POST ")
    assert said.exc_info is None  # where in our code it was found out helps nobody


async def times(local: Settings, retry: list[Json]) -> tuple[Site, dict[str, Any]]:
    """A run against a server that is busy twice, and asks for a second each time."""

    async def answer(_: web.Request) -> web.Response:
        busy = len(site.requests) < 3
        return web.Response(status=503 if busy else 200, headers={"Retry-After": "1"} if busy else {})

    async with serving(answer) as site, hosted(local, Tasks()) as host:
        return site, await call(host, "partita.http", {"url": site.url()}, retry=retry)


async def test_retry_after_is_the_pause_of_a_tier_that_takes_the_error(local: Settings) -> None:
    tier = {"match": ["http_503"], "maxRetries": 5, "initialDelay": "1h", "maxDelay": "1h"}
    site, result = await times(local, [tier])
    assert (result["status"], len(site.requests)) == ("Succeeded", 3)


async def test_retry_after_asks_for_no_retry_by_itself(local: Settings) -> None:
    site, result = await times(local, [{"match": ["timeout"], "maxRetries": 5}])
    assert (result["status"], result["error"]["type"], len(site.requests)) == ("Failed", "http_503", 1)
    site, result = await times(local, [])
    assert (result["error"]["type"], len(site.requests)) == ("http_503", 1)


async def test_the_attempts_timeout_ends_a_request(local: Settings) -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(answer) as site, hosted(local, Tasks()) as host:
        result = await call(host, "partita.http", {"url": site.url()}, timeout="100ms")
    assert result["error"]["type"] == "timeout"


async def waiting(host: Host, name: str = "") -> UUID:
    """A run that waits for ``approval``, or will."""
    await host.deploy(WAIT, name="waits", output={"ok": "${nodes.approval.output.ok}"})
    return (await host.engine.start(StartRequest(namespace=NAMESPACE, definition="waits", name=name))).run_id


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_signal_reaches_another_run(settings: Settings, by_name: bool) -> None:
    async with hosted(settings, Tasks()) as host:
        target = await waiting(host, "order-7" if by_name else "")
        run = "order-7" if by_name else str(target)
        result = await call(host, "partita.signal", {"run": run, "name": "approval", "payload": {"ok": True}})
        assert result["status"] == "Succeeded", result
        assert result["output"]["runId"] == str(target)
        assert result["output"]["state"] in {"Accepted", "Consumed"}
        assert orjson.loads((await host.ended(target))["output_json"]) == {"ok": True}
        (signal,) = await host.fetch(SIGNALS, target)
        assert signal["sender"] == f"run {result['run']}, node only"


async def test_all_attempts_of_a_task_are_one_signal(settings: Settings) -> None:
    async with hosted(settings) as host:
        target = await waiting(host)
        task, run_id = SignalTask(host.engine), uuid4()
        value = {"run": str(target), "name": "other", "payload": {"n": 1}}
        first = await task(TaskContext(claimed(type="partita.signal", run_id=run_id)), value)
        again = await task(TaskContext(claimed(type="partita.signal", run_id=run_id, attempt=2)), value)
        another = await task(TaskContext(claimed(type="partita.signal", run_id=uuid4())), value)
        named_ = await task(TaskContext(claimed(type="partita.signal", run_id=uuid4())), {**value, "id": "mine"})
        assert (first["state"], again["state"], another["state"]) == ("Accepted", "AlreadySent", "Accepted")
        assert first["id"] == again["id"] != another["id"]
        assert named_["id"] == "mine"
        assert len(await host.fetch(SIGNALS, target)) == 3


async def test_signals_that_are_refused(settings: Settings) -> None:
    async with hosted(settings, Tasks()) as host:
        target = await waiting(host)
        order = {"run": str(target), "name": "approval"}
        refused = await call(host, "partita.signal", {**order, "payload": {"ok": 3}})
        assert (refused["error"]["type"], refused["error"]["details"]["reason"]) == ("signal_refused", "SchemaMismatch")
        await call(host, "partita.signal", {**order, "payload": {"ok": True}})
        await host.ended(target)
        late = await call(host, "partita.signal", {**order, "payload": {"ok": True}})
        assert (late["error"]["type"], late["error"]["details"]["reason"]) == ("signal_refused", "RunFinished")


async def test_runs_that_are_not_there(settings: Settings) -> None:
    async with hosted(settings, Tasks()) as host:
        target = await waiting(host)
        for run in (str(uuid4()), "nobody", str(UUID(int=target.int ^ 1))):
            result = await call(host, "partita.signal", {"run": run, "name": "approval"})
            assert result["error"]["type"] == "run_not_found", run
            assert "expected a run's id or name in this namespace" in result["error"]["message"]
        task = SignalTask(host.engine)
        context = TaskContext(replace(claimed(type="partita.signal"), namespace="other"))
        kind, message, _ = await failing(task, context, {"run": str(target), "name": "approval"})
        assert kind == "run_not_found"
        assert f"run other/{target}" in message


async def failing(task: Any, context: TaskContext, value: Json) -> tuple[str, str, Any]:
    async def bound(_: TaskContext, given: Json) -> Json:
        return await task(context, given)

    return await fails(bound, **value)  # type: ignore[arg-type]  # it is called like the task of requests


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({}, ["run: is missing", "name: is missing"]),
        ({"run": "A B", "name": "", "id": "a b"}, ["run: 'A B' does not fit", "id: 'a b' does not fit", "name: "]),
        ({"run": "a", "name": "b", "extra": 1}, ["extra: is no field"]),
    ],
)
async def test_every_problem_of_a_signal_is_named(
    settings: Settings, value: dict[str, Json], problems: list[str]
) -> None:
    async with hosted(settings) as host:
        context = TaskContext(claimed(type="partita.signal"))
        kind, message, _ = await failing(SignalTask(host.engine), context, value)
    assert kind == "invalid_input"
    assert [problem for problem in problems if problem not in message] == []


async def test_a_line_in_the_log(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "partita.task")
    value = {"message": "order\nfake line", "level": "warning", "data": {"n": [1, "é"]}}
    async with hosted(settings, Tasks()) as host:
        result = await call(host, "partita.log", value)
        assert (result["status"], result["output"]) == ("Succeeded", None)
        await call(host, "partita.log", {"message": "x" * 10_000})
        wrong = await call(host, "partita.log", {"level": "loud", "text": "a"})
    first, second = [record for record in caplog.records if record.name == "partita.task.partita.log"][:2]
    assert (first.levelname, first.getMessage()) == ("WARNING", 'order\\nfake line {"n":[1,"é"]}')
    assert (vars(first)["run_id"], vars(first)["node"]) == (str(result["run"]), "only")
    assert second.getMessage() == "x" * 4_096 + "… (5,904 characters left out)"
    assert wrong["error"]["type"] == "invalid_input"
    for problem in ("message: is missing", "level: is 'loud'", "text: is no field"):
        assert problem in wrong["error"]["message"]


async def test_an_unknown_built_in_type_fails_clearly(settings: Settings) -> None:
    at_once = replace(settings, engine=replace(settings.engine, unknown_types=0))
    async with hosted(at_once, Tasks()) as host:
        result = await call(host, "partita.later", {})
    assert result["error"]["type"] == "unknown_task_type"
    assert "no such built-in type" in result["error"]["message"]
