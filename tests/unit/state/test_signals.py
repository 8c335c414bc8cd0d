"""waitForEvent and signals."""

from __future__ import annotations

from typing import Any

from partita.domain.state.slices import Limits
from tests.property.build import definition
from tests.property.world import World


def waiting(limits: Limits | None = None, **event: Any) -> World:
    world = World(definition({"name": "a", "waitForEvent": event}, {"name": "z", "dependsOn": ["a"]}), limits=limits)
    world.start({"yes": True})
    return world


def later(**event: Any) -> World:
    """A node that waits only after the task ``p``."""
    world = World(
        definition(
            {"name": "p"}, {"name": "a", "dependsOn": ["p"], "waitForEvent": event}, {"name": "z", "dependsOn": ["a"]}
        )
    )
    world.start()
    return world


def test_the_output_is_the_payload_and_the_event_its_envelope() -> None:
    world = World(definition({"name": "a", "waitForEvent": {}}, output="${nodes.a.event}"))
    world.start()
    world.signal("a", {"by": "me"}, id="s1", sender="ann")
    assert world.output("a") == {"by": "me"}
    assert world.result == {
        "name": "a",
        "id": "s1",
        "sender": "ann",
        "time": "2030-01-01T00:00:00Z",
        "payload": {"by": "me"},
    }


def test_a_name_may_be_an_expression() -> None:
    world = World(definition({"name": "a", "waitForEvent": {"name": "order-${input.id}"}}))
    world.start({"id": 7})
    world.signal("order-7", 1)
    assert world.status == "Succeeded"


def test_any_of_says_which_name_came() -> None:
    world = waiting(anyOf=[{"name": "yes"}, {"name": "no", "schema": {"type": "string"}}])
    assert {wait.name for wait in world.store.waits} == {"yes", "no"}
    assert world.signal("no", 1).outcome == "refused"
    world.signal("no", "never")
    assert world.output("a") == {"name": "no", "payload": "never"}
    assert world.store.waits == []


def test_until_collects_events() -> None:
    world = waiting(until="${events.exists(e, !e.payload) || events.filter(e, e.payload).size() >= 2}")
    world.signal("a", True)
    assert world.state("a") == "Waiting"
    world.signal("a", True)
    assert [event["payload"] for event in world.output("a")] == [True, True]
    assert {event["id"] for event in world.output("a")} == {"s1", "s2"}


def test_an_error_in_until_fails_the_node() -> None:
    world = waiting(until="${events[0].payload.none}")
    world.signal("a", {})
    assert (world.status, world.run.error and world.run.error.type) == ("Failed", "expression")


def test_the_oldest_buffered_signal_wins_and_the_others_stay() -> None:
    world = later()
    world.signal("a", 1)
    world.signal("a", 2)
    world.complete("p")
    assert world.output("a") == 1
    assert [signal.row.payload.value for signal in world.store.signals.values() if signal.open] == [2]


def test_a_buffered_signal_that_breaks_the_schema_is_refused_for_good() -> None:
    world = later(schema={"type": "integer"})
    world.signal("a", "one", id="bad")
    world.signal("a", 2, id="good")
    world.complete("p")
    assert world.output("a") == 2
    assert "payload" in world.store.signals["bad"].refused


def test_ignore_earlier_drops_what_came_before() -> None:
    world = later(ignoreEarlier=True)
    world.signal("a", 1, id="early")
    world.complete("p")
    assert world.state("a") == "Waiting"
    assert world.store.signals["early"].refused
    world.signal("a", 2)
    assert world.output("a") == 2


def test_a_signal_goes_to_the_node_that_has_waited_longest() -> None:
    world = World(
        definition(
            {"name": "p"},
            {"name": "b", "waitForEvent": {"name": "go"}},
            {"name": "a", "dependsOn": ["p"], "waitForEvent": {"name": "go"}},
        )
    )
    world.start()
    world.complete("p")
    world.signal("go", 1)
    assert (world.state("b"), world.state("a")) == ("Completed", "Waiting")
    world.signal("go", 2)
    assert world.output("a") == 2


def test_an_id_counts_once_for_ever() -> None:
    world = later()
    world.signal("a", 1, id="s1")
    assert world.signal("a", 2, id="s1").outcome == "already_applied"
    world.complete("p")
    assert world.signal("a", 3, id="s1").outcome == "already_applied"
    world.complete("z")
    assert world.signal("a", 4, id="s1").outcome == "already_applied"


def test_a_refused_signal_names_the_path() -> None:
    world = waiting(schema={"type": "object", "properties": {"by": {"type": "string"}}})
    reply = world.signal("a", {"by": 7})
    assert (reply.outcome, reply.reason) == ("refused", "SchemaMismatch")
    assert "payload.by" in reply.message
    assert world.state("a") == "Waiting"
    assert world.events("SignalReceived")[0][5]["refused"] == reply.message


def test_a_finished_run_refuses_signals_and_records_nothing() -> None:
    world = waiting()
    world.cancel()
    reply = world.signal("a", 1)
    assert (reply.outcome, reply.reason) == ("refused", "RunFinished")
    assert world.store.signals == {}


def test_a_timeout_without_a_route_is_the_error_timeout() -> None:
    world = waiting(timeout="1h")
    world.tick(3_600)
    assert world.run.error is not None
    assert world.run.error.type == "timeout"


def test_a_timeout_can_be_caught() -> None:
    world = World(
        definition({"name": "a", "waitForEvent": {"timeout": "1h"}, "onError": [{"match": ["timeout"], "next": []}]})
    )
    world.start()
    world.tick(3_600)
    assert world.status == "Succeeded"


def test_on_timeout_gives_an_output_or_takes_a_route() -> None:
    world = waiting(timeout="1h", onTimeout={"output": {"late": "${input.yes}"}})
    world.tick(3_600)
    assert (world.output("a"), world.state("z")) == ({"late": True}, "Queued")
    world = World(
        definition(
            {"name": "a", "waitForEvent": {"timeout": "1h", "onTimeout": {"next": ["e"]}}},
            {"name": "e"},
            {"name": "z", "dependsOn": ["a"]},
        )
    )
    world.start()
    world.tick(3_600)
    assert world.states() == {"a": "Failed", "e": "Queued", "z": "Skipped"}


def test_partial_events_of_a_timed_out_quorum_have_no_event() -> None:
    world = World(
        definition(
            {
                "name": "a",
                "waitForEvent": {"timeout": "1h", "until": "${events.size() > 1}", "onTimeout": {"output": "late"}},
            },
            output=["${nodes.a.output}", "${nodes.a.event}"],
        )
    )
    world.start()
    world.signal("a", 1)
    world.tick(3_600)
    assert world.result == ["late", None]


def test_a_timeout_is_gone_once_the_event_came() -> None:
    world = waiting(timeout="1h")
    world.signal("a", 1)
    assert (world.store.timers, world.store.waits) == ({}, [])


def test_the_mailbox_is_bounded() -> None:
    world = World(definition({"name": "p"}), limits=Limits(signals_buffered=2))
    world.start()
    assert [world.signal("x", 1).outcome for _ in range(2)] == ["applied", "applied"]
    reply = world.signal("x", 1)
    assert (reply.outcome, reply.reason) == ("refused", "MailboxFull")


def test_a_payload_beyond_the_limit_is_refused() -> None:
    world = waiting(limits=Limits(output_bytes=10))
    assert world.signal("a", "x" * 20).reason == "PayloadTooLarge"
    assert world.state("a") == "Waiting"
