"""Retries, lost leases and backoff."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from partita.domain.model import Tier
from partita.domain.state.retry import LONGEST_MS, backoff_ms, jitter_share
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Limits
from tests.property.build import definition
from tests.property.world import RUN_ID, World


def started(*tiers: dict[str, Any], limits: Limits | None = None, **more: Any) -> World:
    world = World(definition({"name": "a", "retry": list(tiers), **more}), limits=limits)
    world.start({"n": 1})
    return world


def tier(**fields: Any) -> Tier:
    usual: dict[str, Any] = {
        "match": (),
        "when": None,
        "max_retries": 5,
        "initial_delay_ms": 1_000,
        "multiplier": 2.0,
        "max_delay_ms": 10_000,
        "max_elapsed_ms": None,
        "jitter": 0.0,
    }
    return Tier(**(usual | fields))


def test_backoff_grows_up_to_its_cap() -> None:
    assert [backoff_ms(tier(), used, 0.5) for used in range(6)] == [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]
    assert backoff_ms(tier(), 100_000, 0.0) == 10_000
    assert backoff_ms(tier(initial_delay_ms=0), 3, 0.0) == 0
    assert backoff_ms(tier(multiplier=1.0), 9, 0.0) == 1_000


def test_jitter_only_shortens_and_is_the_same_every_time() -> None:
    assert backoff_ms(tier(jitter=0.2), 0, 0.0) == 1_000
    assert backoff_ms(tier(jitter=0.2), 0, 0.5) == 900
    shares = [jitter_share(RUN_ID, "a", 0, attempt) for attempt in range(200)]
    assert shares == [jitter_share(RUN_ID, "a", 0, attempt) for attempt in range(200)]
    assert all(0 <= share < 1 for share in shares)
    assert 0.3 < sum(shares) / len(shares) < 0.7
    assert jitter_share(RUN_ID, "b", 0, 1) != jitter_share(RUN_ID, "a", 0, 1)


def test_no_retries_by_default() -> None:
    world = started()
    world.fail("a")
    assert world.status == "Failed"


def test_a_retry_keeps_the_input_and_counts_attempts() -> None:
    world = started({"maxRetries": 2, "initialDelay": "5s"}, input={"n": "${input.n}"})
    world.fail("a")
    assert world.store.timers[next(iter(world.store.timers))].fire_at == world.now + timedelta(seconds=5)
    assert (world.row("a").attempt, world.row("a").error is not None) == (1, True)
    world.tick(5)
    assert (world.row("a").attempt, world.input("a")) == (2, {"n": 1})
    world.complete("a", "done")
    assert (world.status, world.row("a").error) == ("Succeeded", None)
    assert [line[:3] for line in world.events() if line[1] == "a"] == [
        ("TaskFailed", "a", 1),
        ("TaskCompleted", "a", 2),
    ]


def test_each_tier_counts_its_own() -> None:
    world = started(
        {"match": ["gateway"], "maxRetries": 1, "initialDelay": "0s"},
        {"match": ["busy"], "maxRetries": 1, "initialDelay": "0s"},
    )
    world.fail("a", "gateway")
    world.fail("a", "busy")
    assert dict(world.row("a").retries) == {"0": 1, "1": 1}
    world.fail("a", "gateway")
    assert world.status == "Failed"


def test_a_later_tier_goes_on_where_the_first_ended() -> None:
    world = started({"maxRetries": 1, "initialDelay": "0s"}, {"maxRetries": 1, "initialDelay": "1h"})
    world.fail("a")
    world.fail("a")
    assert world.state("a") == "Waiting"
    world.tick(3_600)
    world.fail("a")
    assert world.status == "Failed"


def test_when_of_a_tier_looks_at_the_error() -> None:
    world = started({"when": "${error.details.status >= 500}", "maxRetries": 9, "initialDelay": "0s"})
    world.fail("a", details={"status": 503})
    assert world.state("a") == "Queued"
    world.fail("a", details={"status": 404})
    assert world.status == "Failed"


def test_an_error_in_when_becomes_the_failure_and_keeps_the_first() -> None:
    world = started({"when": "${error.details.status >= 500}", "maxRetries": 9})
    world.fail("a", "odd")
    error = world.run.error
    assert error is not None
    assert error.details is not None
    assert error.type == "expression"
    assert error.details.value["error"]["type"] == "odd"


def test_max_elapsed_counts_from_the_first_failure() -> None:
    world = started({"maxRetries": 99, "initialDelay": "10s", "multiplier": 1, "maxElapsed": "25s"})
    for _ in range(2):
        world.fail("a")
        world.tick(10)
    world.fail("a")
    assert world.status == "Failed"


def test_retryable_without_a_tier_has_three_retries_and_its_own_delay() -> None:
    world = started()
    for _ in range(3):
        world.fail("a", retryable=True, retry_after_ms=7_000)
        (timer,) = world.store.timers.values()
        assert timer.fire_at == world.now + timedelta(seconds=7)
        world.tick(7)
    world.fail("a", retryable=True, retry_after_ms=7_000)
    assert world.status == "Failed"


def test_retryable_replaces_the_delay_of_a_tier() -> None:
    world = started({"maxRetries": 1, "initialDelay": "1h"})
    world.fail("a", retryable=True, retry_after_ms=0)
    assert world.state("a") == "Queued"
    world.fail("a", retryable=True)
    assert world.status == "Failed"


def test_an_absurd_delay_is_bounded() -> None:
    world = started()
    world.fail("a", retryable=True, retry_after_ms=10**18)
    (timer,) = world.store.timers.values()
    assert timer.fire_at == world.now + timedelta(milliseconds=LONGEST_MS)


def test_lost_leases_have_their_own_budget() -> None:
    world = started({"maxRetries": 1, "initialDelay": "0s"}, limits=Limits(lost_leases=2))
    world.lose("a")
    world.lose("a")
    world.fail("a")
    assert world.row("a").attempt == 4
    world.lose("a")
    assert world.run.error is not None
    assert (world.status, world.run.error.type) == ("Failed", "lease_lost")


def test_a_lost_lease_can_be_caught() -> None:
    world = started(limits=Limits(lost_leases=0), onError=[{"match": ["lease_lost"], "next": []}])
    world.lose("a")
    assert world.status == "Succeeded"


def test_a_type_that_the_worker_does_not_know_has_its_own_budget_and_then_the_usual_way() -> None:
    world = started(
        {"match": ["unknown_task_type"], "maxRetries": 1, "initialDelay": "0s"}, limits=Limits(unknown_types=7)
    )
    for seconds in (1, 2, 4, 8, 16, 30, 30):
        world.fail("a", "unknown_task_type")
        (timer,) = world.store.timers.values()
        assert timer.fire_at == world.now + timedelta(seconds=seconds)
        world.tick(seconds)
    assert dict(world.row("a").retries) == {"unknown": 7}
    world.fail("a", "unknown_task_type")
    assert dict(world.row("a").retries) == {"unknown": 7, "0": 1}, "the tier takes what the budget does not"
    world.fail("a", "unknown_task_type")
    assert world.run.error is not None
    assert (world.status, world.run.error.type) == ("Failed", "unknown_task_type")
    assert [line[:3] for line in world.events() if line[0] == "TaskFailed"] == [
        ("TaskFailed", "a", attempt) for attempt in range(1, 10)
    ]


def test_an_attempt_that_is_handed_back_is_not_spent() -> None:
    world = started()
    for _ in range(30):
        world.lose("a", handed_back=True)
    assert (world.row("a").attempt, dict(world.row("a").retries)) == (1, {})
    assert [line for line in world.events() if line[1] == "a"] == []
    assert world.store.ready[NodeKey("a")].attempt == 1


def test_a_timeout_of_an_attempt_can_be_retried() -> None:
    world = started({"match": ["timeout"], "maxRetries": 1, "initialDelay": "0s"})
    world.time_out("a")
    assert world.row("a").attempt == 2
    world.time_out("a")
    assert world.run.error is not None
    assert world.run.error.type == "timeout"


def test_schedule_to_start_stands_on_the_ready_row() -> None:
    world = started(scheduleToStart="1m", onError=[{"match": ["schedule_to_start"], "next": []}])
    assert world.store.ready[NodeKey("a")].schedule_to_start_ms == 60_000
    world.never_taken("a")
    assert world.status == "Succeeded"


@pytest.mark.parametrize(("timeout", "expected"), [("90s", 90_000), ("${input.t}", 45_000), (None, 300_000)])
def test_the_timeout_of_an_attempt(timeout: str | None, expected: int) -> None:
    world = World(definition({"name": "a", **({"timeout": timeout} if timeout else {})}))
    world.start({"t": "45s"})
    assert world.store.ready[NodeKey("a")].timeout_ms == expected


def test_the_error_of_a_node_that_is_tried_again_is_not_seen_yet() -> None:
    later = {
        "name": "c",
        "dependsOn": ["a", "b"],
        "join": "any",
        "compute": {"seen": "${get(nodes, 'a.error.type', 'none')}"},
    }
    world = World(definition({"name": "a", "retry": [{"maxRetries": 3}]}, {"name": "b"}, later))
    world.start()
    world.fail("a", "boom")
    world.complete("b")
    output = world.row("c").output
    assert output is not None
    assert output.value == {"seen": "none"}
