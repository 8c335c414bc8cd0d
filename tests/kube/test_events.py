"""What is told as Events and what is not: rules without a cluster."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partita.domain.errors import ConflictError, ForbiddenError, NotFoundError, UnavailableError
from partita.domain.state.rows import RunStatus
from partita.engine.projection import ObjectRef, Refusal
from partita.kube import metric_families as families
from partita.kube.client import KubeClient
from partita.kube.engine_events import engine_news
from partita.kube.events import BURST, QUEUE, EventBudget, Events, News, event_manifest
from partita.kube.run_events import RunEvents, Shown
from partita.probes.metrics import Metrics
from tests.kube.summaries import T0, at, summary

NOW = datetime(2026, 11, 30, 4, 0, tzinfo=UTC)
FRESH = Shown("", "")


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        self.now += seconds
        await asyncio.sleep(0)
        return event.is_set()


class Told:
    """Collects news, with a clock for what is held back."""

    def __init__(self, after_ms: int = 5_000) -> None:
        self.news: list[News] = []
        self.time = Time()
        self.events = RunEvents(self.news.append, after_ms=after_ms, clock=self.time)

    def later(self, seconds: float = 5) -> list[tuple[str, str]]:
        self.time.now += seconds
        self.events.flush()
        return [(news.reason, news.message) for news in self.news]


def test_a_short_run_that_succeeds_makes_no_event() -> None:
    told = Told()
    told.events.shown(summary(), FRESH, {})
    told.events.shown(summary(status=RunStatus.SUCCEEDED, finished_at=at(4.9)), Shown("Running", ""), {})
    assert told.later(100) == []


def test_a_longer_run_tells_its_start_its_wait_and_its_end() -> None:
    told = Told()
    told.events.shown(summary(), FRESH, {})
    told.events.shown(summary(), Shown("Running", ""), {"waitingFor": "event a"})
    told.events.shown(summary(), Shown("Running", "event a"), {"waitingFor": "event b"})
    assert told.later(4.9) == []
    assert told.later(0.1) == [
        ("Started", f"run {summary().run_id} of version 2 of order"),
        ("Waiting", "waits for event b"),
    ]
    told.events.shown(summary(), Shown("Running", "event b"), {"waitingFor": "event b"})
    assert len(told.later()) == 2
    ended = summary(status=RunStatus.SUCCEEDED, finished_at=at(125), done=5)
    told.events.shown(ended, Shown("Running", "event b"), {})
    assert told.later()[2:] == [("Succeeded", "5 of 5 nodes settled in 2 min 5 s")]
    told.events.shown(ended, Shown("Succeeded", ""), {})
    assert len(told.later()) == 3


def test_a_wait_that_is_over_soon_is_not_told() -> None:
    told = Told()
    told.events.shown(summary(), Shown("Running", ""), {"waitingFor": "timer t"})
    told.events.shown(summary(), Shown("Running", "timer t"), {})
    assert told.later() == []


@pytest.mark.parametrize(("status", "warning"), [(RunStatus.FAILED, True), (RunStatus.CANCELLED, False)])
def test_a_bad_end_is_always_told_with_its_reason(status: RunStatus, warning: bool) -> None:
    told = Told()
    told.events.shown(summary(), FRESH, {})
    told.events.shown(summary(status=status, finished_at=at(0.1)), FRESH, {"message": "boom: no card"})
    assert told.later() == [(status.value, "boom: no card")]
    assert told.news[0].warning is warning


def refusal(waiting: bool) -> Refusal:
    ref = ObjectRef(uid="u-1", namespace="shop", name="order-1", generation=1)
    return Refusal(object=ref, reason="DefinitionNotFound", message="no such", waiting=waiting, created_at=T0, now=T0)


def test_refusals_are_warnings_and_one_that_heals_soon_is_not_told() -> None:
    told = Told()
    told.events.refused(refusal(waiting=True))
    assert told.later(1) == []
    told.events.shown(summary(status=RunStatus.SUCCEEDED, finished_at=at(1)), FRESH, {})
    assert told.later() == []
    told.events.refused(refusal(waiting=True))
    assert told.later() == [("DefinitionNotFound", "no such")]
    told.events.refused(refusal(waiting=False))
    assert told.later()[1:] == [("Refused", "DefinitionNotFound: no such")]
    assert all(news.warning for news in told.news)


def some(reason: str = "Started", **more: Any) -> News:
    fields = {"kind": "WorkflowRun", "namespace": "shop", "name": "order-1", "uid": "u-1", "message": "words"}
    return News(**{**fields, "reason": reason, **more})


def test_an_event_is_named_after_what_it_tells() -> None:
    def name(news: News) -> str:
        return str(event_manifest(news, NOW, "me")["metadata"]["name"])

    assert name(some()) == name(some(message="other words"))
    different = {name(some()), name(some("Failed")), name(some(key="2")), name(some(uid="u-2"))}
    assert len(different) == 4
    assert name(some("Waiting", latest=True, key="1")) == name(some("Waiting", latest=True, key="2"))
    assert len(name(some(name="x" * 253))) <= 253
    manifest = event_manifest(some("Failed", warning=True, message="m" * 5000), NOW, "me")
    assert len(manifest["message"]) == 1024
    assert (manifest["type"], manifest["lastTimestamp"]) == ("Warning", "2026-11-30T04:00:00Z")


def test_the_budget() -> None:
    time = Time()
    budget = EventBudget(600, time)
    assert [budget.take() for _ in range(BURST)] == [0.0] * BURST
    assert budget.take() == pytest.approx(0.1)
    time.now += 1
    assert [budget.take() for _ in range(10)] == [0.0] * 10
    assert budget.take() > 0


class Api(KubeClient):
    """An API server in memory, with an error of one's choice."""

    def __init__(self) -> None:
        super().__init__(lambda: pytest.fail("no connection is needed"))
        self.objects: dict[str, dict[str, Any]] = {}
        self.error: Exception | None = None

    async def create(self, path: str, body: Any, **_: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        key = f"{path}/{body['metadata']['name']}"
        if key in self.objects:
            raise ConflictError("exists")
        self.objects[key] = dict(body)
        return self.objects[key]

    async def get(self, path: str, **_: Any) -> dict[str, Any]:
        if path not in self.objects:
            raise NotFoundError(path)
        return self.objects[path]

    async def patch(self, path: str, body: Any, kind: str = "") -> dict[str, Any]:  # noqa: ARG002  # as the client
        self.objects[path].update(body)
        return self.objects[path]


def writer(api: Api, per_minute: int = 600) -> tuple[Events, Metrics]:
    metrics = Metrics(families.FAMILIES)
    return Events(api, metrics, instance="me", per_minute=per_minute, clock=Time()), metrics


async def test_the_same_news_is_written_once_and_the_latest_is_counted() -> None:
    api = Api()
    events, metrics = writer(api)
    for _ in range(2):
        events.tell(some())
    for words in ("for a", "for b"):
        events.tell(some("Waiting", latest=True, message=words))
    await events.tick()
    told = sorted((each["reason"], each["message"], each["count"]) for each in api.objects.values())
    assert told == [("Started", "words", 1), ("Waiting", "for b", 2)]
    assert metrics.value(families.EVENTS, "sent") == 4


async def test_failures_stay_here() -> None:
    api = Api()
    events, metrics = writer(api)
    for api.error in (ForbiddenError("no right"), UnavailableError("away")):
        events.tell(some())
        await events.tick()
    assert metrics.value(families.EVENTS, "failed") == 2
    api.error = None
    events.tell(some())
    await events.tick()
    assert metrics.value(families.EVENTS, "sent") == 1


async def test_beyond_the_rate_news_waits_and_then_is_dropped_the_ordinary_first() -> None:
    api = Api()
    events, metrics = writer(api, per_minute=60)
    for number in range(QUEUE):
        events.tell(some(key=str(number)))
    assert metrics.value(families.EVENTS, "dropped") == QUEUE // 2
    events.tell(some("Failed", warning=True))
    assert metrics.value(families.EVENTS, "dropped") == QUEUE // 2
    assert await events.tick() == pytest.approx(1)
    assert len(api.objects) == 60


async def test_none_is_written_when_none_is_wanted() -> None:
    api = Api()
    events, _ = writer(api, per_minute=0)
    events.tell(some())
    await events.tick()
    assert api.objects == {}


def engine_status(epoch: int, synced: str) -> dict[str, Any]:
    condition = {"type": "Synced", "status": synced, "message": "gone", "lastTransitionTime": f"t{synced}"}
    return {"epoch": epoch, "leader": "a", "conditions": [condition]}


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        ({}, engine_status(1, "True"), ["LeaderChanged"]),
        (engine_status(1, "True"), engine_status(1, "True"), []),
        (engine_status(1, "True"), engine_status(1, "False"), ["DatabaseLost"]),
        (engine_status(1, "False"), engine_status(1, "False"), []),
        (engine_status(1, "False"), engine_status(2, "True"), ["LeaderChanged", "DatabaseRecovered"]),
    ],
)
def test_news_of_the_engine(before: dict[str, Any], after: dict[str, Any], reasons: list[str]) -> None:
    metadata = {"namespace": "n", "name": "partita", "uid": "u"}
    assert [news.reason for news in engine_news(metadata, before, after)] == reasons


def test_durations_are_for_people() -> None:
    told = Told(after_ms=0)
    for seconds in (12, 3_700):
        ended = summary(status=RunStatus.SUCCEEDED, created_at=T0, finished_at=T0 + timedelta(seconds=seconds))
        told.events.shown(ended, Shown("Running", ""), {})
    assert [message.rsplit(" in ")[1] for _, message in told.later()] == ["12 s", "1 h 1 min"]
