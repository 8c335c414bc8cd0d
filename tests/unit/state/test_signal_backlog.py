"""Many signals that came before their wait, and signals that cannot be what they are called."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.payload import Payload
from partita.domain.state.events import MailboxContinued, SignalReceived
from partita.domain.state.slices import Limits
from tests.property.build import definition
from tests.property.world import World
from tests.unit.state.family import Family
from tests.unit.state.looping import Looping

ENOUGH = "${events.size() >= 5}"


def backlog(count: int, *nodes: Any, visits: int = 1) -> Looping:
    """So many signals ``a`` in the mailbox of a run whose node ``a`` is about to wait."""
    first = {"name": "a", "dependsOn": ["p"], "waitForEvent": {"until": ENOUGH, "timeout": "10s"}}
    world = Looping(definition({"name": "p"}, first, *nodes, output="${nodes.a.output.map(e, e.id)}"), visits=visits)
    world.start()
    for number in range(count):
        world.signal("a", number, id=f"s{number}")
    return world


def left(world: World) -> list[str]:
    """Ids of signals that nobody took and nobody refused."""
    return [one.row.id for one in world.store.signals.values() if not (one.consumed_by or one.refused)]


def test_a_decision_takes_no_more_of_a_backlog_than_it_may_spend() -> None:
    world = backlog(7)
    world.complete("p")
    assert world.letters == [MailboxContinued()]
    assert (left(world), world.state("a")) == (["s1", "s2", "s3", "s4", "s5", "s6"], "Waiting")
    assert world.go_on() == 4
    assert (world.status, world.result) == ("Succeeded", ["s0", "s1", "s2", "s3", "s4"])
    assert left(world) == ["s5", "s6"]
    assert world.store.waits == []
    assert world.store.timers == {}


def test_signals_that_come_meanwhile_stand_behind_the_backlog() -> None:
    world = backlog(3)
    world.complete("p")
    for number in range(3, 6):
        assert world.signal("a", number, id=f"s{number}").reason == "Accepted"
    world.go_on()
    assert world.result == ["s0", "s1", "s2", "s3", "s4"]


def test_a_backlog_that_is_not_enough_leaves_the_wait_standing() -> None:
    world = backlog(4)
    world.complete("p")
    world.go_on()
    assert (world.state("a"), left(world)) == ("Waiting", [])
    assert world.signal("a", 4, id="s4").reason == "Consumed"
    assert world.result == ["s0", "s1", "s2", "s3", "s4"]


def test_a_backlog_that_came_in_time_beats_the_deadline() -> None:
    world = backlog(5)
    world.complete("p")
    world.tick(11)
    world.tick()
    world.go_on()
    assert (world.status, world.result) == ("Succeeded", ["s0", "s1", "s2", "s3", "s4"])


def test_the_deadline_counts_once_the_backlog_has_been_looked_at() -> None:
    world = backlog(4)
    world.complete("p")
    world.tick(11)
    for _ in range(5):
        world.go_on()
        world.tick()
    error = world.row("a").error
    assert error is not None
    assert (world.status, error.type) == ("Failed", "timeout")


def test_a_wait_that_begins_meanwhile_stands_behind_the_one_before() -> None:
    second = {"name": "b", "dependsOn": ["q"], "waitForEvent": {"name": "a"}}
    world = backlog(7, {"name": "q"}, second)
    world.complete("p")
    world.complete("q")
    assert world.state("b") == "Waiting"
    world.go_on()
    assert [event["id"] for event in world.output("a")] == ["s0", "s1", "s2", "s3", "s4"]
    assert world.output("b") == 5


def test_a_node_that_is_cancelled_leaves_the_backlog_to_the_next() -> None:
    second = {"name": "b", "dependsOn": ["q"], "waitForEvent": {"name": "a"}}
    world = backlog(3, {"name": "q"}, second)
    world.complete("p")
    world.complete("q")
    world.controls(2, cancel_nodes=("a",))
    world.go_on()
    assert world.output("b") == 1


def test_a_wait_that_ignores_earlier_signals_leaves_the_backlog_to_the_one_before() -> None:
    second = {"name": "b", "dependsOn": ["q"], "waitForEvent": {"name": "a", "ignoreEarlier": True}}
    world = backlog(7, {"name": "q"}, second)
    world.complete("p")
    world.complete("q")
    world.go_on()
    assert [event["id"] for event in world.output("a")] == ["s0", "s1", "s2", "s3", "s4"]
    assert (left(world), world.state("b")) == ([], "Waiting")
    assert world.signal("a", "later").reason == "Consumed"
    assert world.output("b") == "later"


def test_a_backlog_for_a_subflow_that_breaks_its_schema_is_refused_in_parts() -> None:
    ask = {"name": "a", "waitForEvent": {"name": "a", "schema": {"type": "object"}}}
    inner = definition(ask, subflow="s")
    child = {"name": "s", "dependsOn": ["p"], "workflow": {"subflow": "s"}}
    family = Family(definition({"name": "p"}, child, subflows={"s": inner}), limits=Limits(visits=1))
    root = family.start()
    for number in range(4):
        root.signal("a", number, id=f"s{number}")
    root.signal("a", {"fits": True}, id="fits")
    root.complete("p")
    family.deliver()
    assert root.status == "Succeeded"
    assert left(root) == []


@pytest.mark.parametrize(
    ("field", "text"), [("name", "n" * 64), ("id", "i" * 64), ("id", "a\0"), ("name", ""), ("id", "")]
)
def test_a_signal_that_nothing_could_be_called_is_refused(field: str, text: str) -> None:
    world = World(definition({"name": "a", "waitForEvent": {}}))
    world.start()
    event = {"name": "a", "id": "s", field: text}
    reply = world.send(SignalReceived(id=event["id"], name=event["name"], payload=Payload.of(1)))
    assert (reply.outcome, reply.reason, reply.message.split(":")[0]) == ("refused", "InvalidSignal", field)
    assert world.store.signals == {}


@pytest.mark.parametrize("name", ["n" * 64, "two\nlines", 7])
def test_a_wait_for_what_no_signal_can_be_called_fails(name: Any) -> None:
    world = World(definition({"name": "a", "waitForEvent": {"name": "${input.n}"}}))
    world.start({"n": name})
    error = world.row("a").error
    assert error is not None
    assert (world.status, error.type) == ("Failed", "expression")
    assert error.message.startswith("waitForEvent.name: ")


def test_a_mailbox_holds_only_so_many_bytes() -> None:
    """It is read as a whole with every event that concerns it."""
    world = World(definition({"name": "a", "waitForEvent": {}}, {"name": "p"}), limits=Limits(signals_bytes=100))
    world.start()
    assert world.signal("b", "x" * 200, id="one").reason == "Accepted", "a single one is as large as any payload"
    reply = world.signal("b", "x", id="two")
    assert (reply.outcome, reply.reason) == ("refused", "MailboxFull")
    assert world.signal("a", "x" * 200, id="three").reason == "Consumed", "what is waited for is not kept"
    assert left(world) == ["one"]
