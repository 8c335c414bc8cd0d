"""Every sentence on retries, errors and timeouts of attempts that the other tests do not hold already."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from partita.domain.error_types import RESERVED, matches
from partita.domain.state.effects import HistoryEntry
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Limits
from tests.property.build import definition
from tests.property.world import EPOCH, World

AT_ONCE = {"maxRetries": 1, "initialDelay": "0s"}


def started(*tiers: dict[str, Any], limits: Limits | None = None, **more: Any) -> World:
    world = World(definition({"name": "a", "retry": list(tiers), **more}), mode="sliced", limits=limits)
    world.start({"n": 1})
    return world


@pytest.mark.parametrize("match", [(), ("any",)])
def test_any_takes_every_type_but_three(match: tuple[str, ...]) -> None:
    refused = {one.name for one in RESERVED if not matches(match, one.name)}
    assert refused == {"fatal", "expression", "cancelled"}
    assert matches(match, "card_declined")
    assert not matches((*match, "gateway"), "fatal")


@pytest.mark.parametrize("kind", ["fatal", "boom"])
def test_what_is_named_is_retried(kind: str) -> None:
    world = started({"match": [kind], **AT_ONCE})
    world.fail("a", kind)
    assert (world.state("a"), world.row("a").attempt) == ("Queued", 2)


def test_fatal_is_not_retried_by_any() -> None:
    world = started(AT_ONCE)
    world.fail("a", "fatal")
    assert world.status == "Failed"


def test_every_attempt_is_kept_with_worker_times_and_error() -> None:
    world = started({**AT_ONCE, "maxRetries": 9})
    lines: list[HistoryEntry] = []
    for how in (world.fail, world.lose, world.time_out, world.complete):
        world.pass_time(1)
        world.claim("a")
        world.pass_time(2)
        how("a")
        assert world.last is not None
        lines += [line for line in world.last.history if line.node == "a"]
    seen = [(line.event, line.attempt, line.who, line.error.type if line.error else "") for line in lines]
    assert seen == [
        ("TaskFailed", 1, "worker-1", "boom"),
        ("LeaseLost", 2, "worker-1", "lease_lost"),
        ("AttemptTimedOut", 3, "worker-1", "timeout"),
        ("TaskCompleted", 4, "worker-1", ""),
    ]
    started_at = [line.started_at for line in lines]
    assert started_at == [EPOCH + timedelta(seconds=seconds) for seconds in (1, 4, 7, 10)]
    assert [line.at for line in lines] == [EPOCH + timedelta(seconds=seconds) for seconds in (3, 6, 9, 12)]


def test_the_input_is_evaluated_once_for_all_attempts() -> None:
    world = started({**AT_ONCE, "initialDelay": "10s"}, input={"at": "${now}"})
    world.fail("a")
    world.tick(10)
    kept = world.row("a").input
    assert kept is not None
    assert EPOCH.strftime("%Y-%m-%dT%H:%M:%S") in kept.text


def test_the_delay_grows_with_the_retries_of_its_tier_only() -> None:
    world = started(
        {"match": ["gateway"], "maxRetries": 9, "initialDelay": "1s"},
        {"match": ["busy"], "maxRetries": 9, "initialDelay": "1m", "maxDelay": "90s"},
    )
    delays = []
    for kind in ("gateway", "busy", "gateway", "busy", "gateway"):
        world.fail("a", kind)
        (timer,) = world.store.timers.values()
        delays.append((timer.fire_at - world.now).total_seconds())
        world.tick(delays[-1])
    assert delays == [1, 60, 2, 90, 4]


def test_max_elapsed_counts_for_each_tier_and_includes_the_delay() -> None:
    slow = {"initialDelay": "10s", "multiplier": 1, "maxRetries": 99}
    world = started({"match": ["one"], **slow, "maxElapsed": "25s"}, {"match": ["two"], **slow, "maxElapsed": "15s"})
    for kind in ("one", "two"):
        world.fail("a", kind)
        world.tick(10)
    world.fail("a", "two")
    assert world.status == "Failed", "10 s have passed since the first failure of its own, and the delay is 10 s"


def test_a_lost_lease_counts_for_no_tier_and_a_failure_not_for_leases() -> None:
    world = started({**AT_ONCE, "maxRetries": 2}, limits=Limits(lost_leases=2))
    world.fail("a")
    world.lose("a")
    world.fail("a")
    world.lose("a")
    assert dict(world.row("a").retries) == {"0": 2, "lost": 2}
    assert world.row("a").attempt == 5
    world.complete("a")
    assert world.status == "Succeeded"


def test_a_lost_lease_is_queued_again_at_once_whatever_the_tiers_say() -> None:
    world = started({"match": ["lease_lost"], "maxRetries": 1, "initialDelay": "1h"})
    world.lose("a")
    assert (world.state("a"), world.store.timers) == ("Queued", {})


def test_a_retry_that_was_asked_for_does_not_go_beyond_a_tier_that_matches() -> None:
    world = started(AT_ONCE)
    world.fail("a", retryable=True)
    world.fail("a", retryable=True)
    assert world.status == "Failed"


def test_a_tier_whose_when_is_false_does_not_match() -> None:
    world = started({**AT_ONCE, "when": "${error.details.again}"})
    world.fail("a", details={"again": False}, retryable=True, retry_after_ms=0)
    assert dict(world.row("a").retries) == {"asked": 1}


def test_on_error_comes_after_the_retries() -> None:
    world = started(AT_ONCE, onError=[{"match": ["boom"], "next": []}])
    world.fail("a")
    assert world.state("a") == "Queued"
    world.fail("a")
    assert (world.state("a"), world.status) == ("Failed", "Succeeded")


def test_schedule_to_start_counts_for_every_attempt_and_may_be_retried() -> None:
    world = started({"match": ["schedule_to_start"], **AT_ONCE}, scheduleToStart="1m")
    world.never_taken("a")
    assert world.row("a").attempt == 2
    assert world.store.ready[NodeKey("a")].schedule_to_start_ms == 60_000
    world.never_taken("a")
    assert world.run.error is not None
    assert world.run.error.type == "schedule_to_start"


def test_the_timeout_of_an_attempt_counts_for_every_attempt() -> None:
    world = started({**AT_ONCE, "maxRetries": 2}, timeout="90s")
    for _ in range(2):
        world.time_out("a")
        assert world.store.ready[NodeKey("a")].timeout_ms == 90_000


def test_an_error_keeps_its_details() -> None:
    world = started()
    world.fail("a", "card_declined", details={"code": 51})
    error = world.run.error
    assert error is not None
    assert error.details is not None
    assert (error.type, error.message, error.details.value) == ("card_declined", "card_declined happened", {"code": 51})


def test_the_error_of_a_retried_attempt_is_gone_once_it_completes() -> None:
    world = started({**AT_ONCE, "initialDelay": "10s"})
    world.fail("a")
    error = world.row("a").error
    assert error is not None
    assert error.type == "boom"
    world.tick(10)
    world.complete("a")
    assert world.row("a").error is None
