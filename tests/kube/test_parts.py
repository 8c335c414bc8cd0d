"""Small parts of the operator that need neither a cluster nor a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partita.domain.errors import ConflictError, UnavailableError
from partita.engine.reconcile import controls_of, derived_run_id, run_id_of
from partita.kube.conditions import Condition, keep_transitions, manifests
from partita.kube.mirror import Mirror, Seen
from partita.kube.resync import confirmed
from partita.kube.retrying import retrying
from partita.kube.signals import removals
from partita.kube.ttl import is_over

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def body(version: int, *, generation: int = 1, **parts: Any) -> dict[str, Any]:
    metadata = {
        "uid": "u-1",
        "namespace": "shop",
        "name": "order-1",
        "resourceVersion": str(version),
        "generation": generation,
        "creationTimestamp": "2026-11-29T12:00:00Z",
        **parts.pop("metadata", {}),
    }
    return {"metadata": metadata, "spec": parts.get("spec", {}), "status": parts.get("status", {})}


def test_the_mirror_keeps_the_newest_body() -> None:
    mirror = Mirror()
    mirror.observe(body(7, generation=2, status={"revision": 5, "runId": "r"}, spec={"signals": [{"id": "a"}]}))
    seen = mirror.observe(body(6))
    assert (seen.resource_version, seen.generation, seen.revision) == (7, 2, 5)
    assert mirror.signals("r") == ("a",)
    mirror.forget("u-1")
    assert mirror.get("u-1") is None
    assert mirror.signals("r") == ()


def test_derived_ids_depend_on_the_object_alone() -> None:
    first = derived_run_id(body(1)["metadata"])
    assert first.version == 7
    assert first == derived_run_id(body(99, generation=4)["metadata"])
    assert first != derived_run_id(body(1, metadata={"uid": "u-2"})["metadata"])
    given = "019ad000-0000-7000-8000-000000000001"
    assert str(run_id_of(body(1, spec={"runId": given}))) == given
    assert str(run_id_of(body(1, spec={}, status={"runId": given}))) == given


def test_controls_of_an_object() -> None:
    spec = {
        "suspend": True,
        "cancel": {},
        "signals": [{"id": "a", "name": "approval", "payload": {"by": "me"}}, {"id": "b", "name": "x"}],
    }
    controls = controls_of(body(1, generation=3, spec=spec))
    assert (controls.cr_generation, controls.suspend) == (3, True)
    assert controls.cancel is not None
    assert controls.cancel.mode == "Graceful"
    assert [(each.id, each.payload.value) for each in controls.signals] == [("a", {"by": "me"}), ("b", {})]


def crowded(present: int, acknowledged: int) -> dict[str, Any]:
    signals = [{"id": f"s{number}"} for number in range(present)]
    return body(1, spec={"signals": signals}, status={"signals": signals[:acknowledged]})


def test_signals_are_removed_only_from_a_crowded_spec() -> None:
    assert removals(crowded(48, 48)) == []
    assert removals(crowded(60, 16)) == []
    operations = removals(crowded(60, 50))
    assert operations[0] == {"op": "test", "path": "/metadata/uid", "value": "u-1"}
    removed = [each["path"] for each in operations if each["op"] == "remove"]
    assert removed == [f"/spec/signals/{number}" for number in range(33, -1, -1)]
    tests = {each["path"]: each["value"] for each in operations if each["op"] == "test"}
    assert tests["/spec/signals/33/id"] == "s33"


@pytest.mark.parametrize(
    ("gone", "suspects", "known", "acts"),
    [(100, 0, 100, True), (101, 0, 100, False), (200, 0, 1000, True), (201, 0, 1000, False), (500, 500, 500, True)],
)
def test_many_vanished_objects_need_a_second_pass(gone: int, suspects: int, known: int, acts: bool) -> None:
    found, before = (frozenset(map(str, range(number))) for number in (gone, suspects))
    assert confirmed(found, before, known) is acts


def test_time_to_live() -> None:
    day = timedelta(days=1)
    ended = NOW - timedelta(hours=2)
    assert not is_over(Seen("u", "n", "x"), NOW, day)
    assert not is_over(Seen("u", "n", "x", finished_at=ended), NOW, day)
    assert is_over(Seen("u", "n", "x", finished_at=ended, ttl_seconds=60), NOW, day)
    assert is_over(Seen("u", "n", "x", finished_at=ended - day), NOW, day)
    assert not is_over(Seen("u", "n", "x", finished_at=ended - day, tracked=True), NOW, day)
    assert is_over(Seen("u", "n", "x", finished_at=ended, ttl_seconds=0, tracked=True), NOW, day)
    assert not is_over(Seen("u", "n", "x", created_at=NOW, finished_at=ended, ttl_seconds=60), NOW, day)


def test_tracked_objects_are_recognised() -> None:
    marked = body(1, metadata={"annotations": {"argocd.argoproj.io/tracking-id": "x"}})
    assert Mirror().observe(marked).tracked
    assert not Mirror().observe(body(1)).tracked


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    later = NOW + timedelta(hours=1)
    old = manifests([Condition("Ready", True, "A", "", NOW), Condition("Accepted", True, "B", "", NOW)], 1)
    new = manifests([Condition("Ready", True, "C", "", later), Condition("Accepted", False, "B", "", later)], 2)
    kept = {each["type"]: each["lastTransitionTime"] for each in keep_transitions(new, old)}
    assert kept == {"Ready": "2026-11-29T00:00:00Z", "Accepted": "2026-11-29T01:00:00Z"}


async def test_retrying_stops_at_the_first_lasting_error() -> None:
    calls = 0

    async def action() -> str:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise UnavailableError("away")
        return "done"

    assert await retrying(action, first=0.001) == "done"
    assert calls == 3

    async def conflict() -> None:
        nonlocal calls
        calls += 1
        raise ConflictError("no")

    with pytest.raises(ConflictError):
        await retrying(conflict, first=0.001)
    assert calls == 4
