"""Which finished objects go and when, in rules and on a real API; the record stays."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partita.domain.errors import NotFoundError
from partita.kube import metric_families as families
from partita.kube.client import KubeClient
from partita.kube.mirror import Mirror, Seen
from partita.kube.resources import DEFINITIONS, RUNS
from partita.kube.retention import Retention
from partita.kube.ttl import Policy, beyond, is_over, life_of
from partita.probes.metrics import Metrics
from partita.settings import Settings
from partita.store.database import Database
from tests.kube.operated import APPROVAL, Namespace, condition, definition, operating, run
from tests.kube.operated import operator_settings as settings_of
from tests.waiting import until

NOW = datetime(2026, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
PLACE = ("shop", "order")


def ended(name: str, hours: float, **more: object) -> Seen:
    """An object whose run ended so many hours ago."""
    seen = Seen(name, "shop", name, definition="order", finished_at=NOW - timedelta(hours=hours))
    for key, value in more.items():
        setattr(seen, key, value)
    return seen


def test_whose_time_holds() -> None:
    policy = Policy(ttl_seconds=60)
    assert life_of(ended("a", 1, ttl_seconds=5), DAY, policy) == timedelta(seconds=5)
    assert life_of(ended("a", 1), DAY, policy) == timedelta(minutes=1)
    assert life_of(ended("a", 1), DAY, Policy(keep=3)) == DAY
    assert life_of(ended("a", 1, tracked=True), DAY, policy) is None
    assert life_of(ended("a", 1, tracked=True, ttl_seconds=5), DAY, policy) == timedelta(seconds=5)
    assert life_of(ended("a", 1), None, None) is None
    assert is_over(ended("a", 1), NOW, DAY, policy)
    assert not is_over(ended("a", 100), NOW, None, None)


def test_the_first_to_end_are_the_first_to_go() -> None:
    objects = [
        ended("old", 3),
        ended("new", 1),
        ended("tracked", 9, tracked=True),
        ended("older", 4, ttl_seconds=10**6),
    ]
    assert [seen.name for seen in beyond(objects, {PLACE: Policy(keep=1)})] == ["older", "old"]
    assert [seen.name for seen in beyond(objects, {PLACE: Policy(keep=0)})] == ["older", "old", "new"]
    assert beyond(objects, {PLACE: Policy(keep=3)}) == []
    assert beyond(objects, {PLACE: Policy(ttl_seconds=0), ("shop", "other"): Policy(keep=0)}) == []


async def gone(here: Namespace, *names: str) -> None:
    async def check() -> bool:
        return not [name for name in names if await here.get(RUNS, name)]

    await until(check, within=40, what=f"{names} to be deleted")


async def finish(here: Namespace, *names: str, **spec: object) -> None:
    """Runs that end one after the other."""
    for name in names:
        await here.create(run(name, "approve", cancel={}, **spec))
        await here.phase(name, "Cancelled")


@pytest.mark.usefixtures("quick_deletion")
async def test_a_definition_keeps_so_many(here: Namespace, operator_settings: Settings, database: Database) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL))
        await here.create(definition("others", APPROVAL))
        await here.create(run("other", "others", cancel={}))
        await finish(here, "a", "b", "c", "d")
        await here.create(run("open", "approve"))
        tracked = run("tracked", "approve", cancel={})
        tracked["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "x"}
        await here.create(tracked)
        await here.phase("tracked", "Cancelled")
        before = (await here.accepted("approve"))["version"]
        await keep(here, 2)
        await gone(here, "a", "b")
        await finish(here, "e")
        await gone(here, "c")
        for name in ("d", "e", "open", "tracked", "other"):
            assert await here.get(RUNS, name), name
        assert (await here.accepted("approve"))["version"] == before
    count = await database.read(lambda connection: connection.fetchval("SELECT count(*) FROM partita.workflow_runs"))
    assert count == 8


async def keep(here: Namespace, number: int) -> None:
    path = DEFINITIONS.path(here.name, "approve")
    await here.client.patch(path, {"spec": {"retention": {"maxFinishedRuns": number}}})


async def test_no_time_at_all_means_at_once(here: Namespace, settings: Settings) -> None:
    """Without the look that is due every ten seconds, which the first of them has just had."""
    async with operating(here, settings_of(settings, here.name)):
        await here.create(definition("approve", APPROVAL, retention={"ttlSecondsAfterFinished": 0}))
        await here.accepted("approve")
        for name in ("a", "b", "c"):
            await here.create(run(name, "approve", cancel={}))
        await here.create(run("stays", "approve", cancel={}, ttlSecondsAfterFinished=600))
        async with asyncio.timeout(8):
            await gone(here, "a", "b", "c")
        await here.phase("stays", "Cancelled")


@pytest.mark.usefixtures("quick_deletion")
async def test_a_new_leader_asks_a_definition_before_a_default_deletes(here: Namespace, settings: Settings) -> None:
    """The default of the settings would delete at once; the definition says otherwise and stands in no event yet."""
    strict = settings_of(settings, here.name, ttl_after_finished_ms=0)
    async with operating(here, settings_of(settings, here.name)):
        await here.create(definition("approve", APPROVAL, retention={"ttlSecondsAfterFinished": 86_400}))
        await here.create(definition("others", APPROVAL))
        await finish(here, "kept")
        await here.create(run("other", "others", cancel={}))
        await here.phase("other", "Cancelled")
    async with operating(here, strict):
        await gone(here, "other")
        assert await here.get(RUNS, "kept")


async def test_a_retention_that_makes_no_sense_is_refused_by_the_api(here: Namespace) -> None:
    with pytest.raises(Exception, match="greater than or equal to 0"):
        await here.create(definition("approve", APPROVAL, retention={"maxFinishedRuns": -1}))


async def test_the_definition_is_accepted_and_says_so(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        await here.create(definition("approve", APPROVAL, retention={"maxFinishedRuns": 3}))
        assert condition(await here.accepted("approve"), "Accepted") == "True"


class Definitions(KubeClient):
    """An API server that knows one definition, which keeps its runs for a day, and notes what is deleted."""

    def __init__(self) -> None:
        super().__init__(lambda: pytest.fail("no connection is needed"))
        self.deleted: list[str] = []

    async def get(self, path: str, **_: object) -> dict[str, Any]:
        if not path.endswith("/order"):
            raise NotFoundError(path)
        return {"spec": {"retention": {"ttlSecondsAfterFinished": 86_400}}}

    async def delete(self, path: str, *, uid: str) -> None:  # noqa: ARG002  # as the client
        self.deleted.append(path.rpartition("/")[2])


async def test_no_default_holds_before_definition_and_engine_are_known() -> None:
    async def now() -> datetime:
        return NOW

    mirror, client = Mirror(), Definitions()
    for name, of in (("kept", "order"), ("goes", "deleted")):
        metadata = {"uid": name, "namespace": "shop", "name": name, "resourceVersion": "1"}
        status = {"finishedAt": "2026-11-29T20:00:00Z"}
        mirror.observe({"metadata": metadata, "spec": {"definitionRef": {"name": of}}, "status": status})
    service = Retention(client, mirror, Metrics(families.FAMILIES), now, default_ms=0)
    await service.tick()
    assert client.deleted == []
    service.default(None)
    service._looked_at = float("-inf")
    await service.tick()
    assert client.deleted == ["goes"]
