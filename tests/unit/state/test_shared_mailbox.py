"""Waits of subflows in the mailbox of their ancestor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from partita.domain.state.draft import Draft
from partita.domain.state.events import Event, SignalGiven, WaitClosed, WaitExpired, WaitOpened, WaitTimedOut
from partita.domain.state.slices import Context
from tests.property.build import definition
from tests.unit.state.family import Family, Member

_INTEGER = {"type": "integer"}


def family_of(
    event: dict[str, Any] | None = None, *beside: dict[str, Any], **node: Any
) -> tuple[Family, Member, Member]:
    """The subflow ``a`` whose node ``w`` waits for ``go``, and the task ``z`` beside it; not started."""
    waits = {"name": "w", "waitForEvent": {"name": "go", **(event or {})}, **node}
    inner = definition(waits, subflow="s", output="${nodes.w.output}")
    root = definition({"name": "a", "workflow": {"subflow": "s"}}, {"name": "z"}, *beside, subflows={"s": inner})
    family = Family(root)
    family.start({"id": 7})
    return family, family.root, family.root.child("a")


def later(event: dict[str, Any]) -> tuple[Family, Member]:
    """The subflow starts after the task ``p``."""
    inner = definition({"name": "w", "waitForEvent": {"name": "go", **event}}, subflow="s", output="${nodes.w.output}")
    root = definition(
        {"name": "p"}, {"name": "a", "dependsOn": ["p"], "workflow": {"subflow": "s"}}, subflows={"s": inner}
    )
    family = Family(root)
    return family, family.start()


def test_the_wait_stands_with_the_root_and_its_signal_reaches_the_child() -> None:
    _, root, child = family_of()
    (wait,) = root.store.waits
    assert (wait.name, wait.node, wait.child, wait.subflow) == ("go", "w", child.run.id, "s")
    assert child.store.waits == []
    assert root.signal("go", {"by": "me"}, id="s1", sender="ann").reason == "Consumed"
    assert (child.output("w"), root.output("a"), root.store.waits) == ({"by": "me"}, {"by": "me"}, [])
    event = child.row("w").event
    assert event is not None
    assert event.value == {"name": "go", "id": "s1", "sender": "ann", "time": "2030-01-01T00:00:00Z"}
    assert root.store.signals["s1"].consumed_by == "w"
    assert [line[0] for line in child.events()] == ["RunStarted", "SignalReceived", "RunFinished"]


def test_names_are_rendered_by_the_child() -> None:
    inner = definition({"name": "w", "waitForEvent": {"name": "go-${input.id}"}}, subflow="s")
    node = {"name": "a", "workflow": {"subflow": "s"}, "input": {"id": "${input.id}"}}
    family = Family(definition(node, subflows={"s": inner}))
    root = family.start({"id": 7})
    root.signal("go-7", 1)
    assert root.status == "Succeeded"


def test_a_name_that_cannot_be_rendered_fails_the_node() -> None:
    inner = definition({"name": "w", "waitForEvent": {"name": "${input.none}"}}, subflow="s")
    family = Family(definition({"name": "a", "workflow": {"subflow": "s"}}, subflows={"s": inner}))
    family.start()
    assert family.root.run.error is not None
    assert family.root.run.error.type == "expression"
    assert family.sent(WaitOpened) == []


def test_a_subflow_takes_no_signals_itself_and_says_who_does() -> None:
    _, root, child = family_of()
    reply = child.signal("go", 1)
    assert (reply.outcome, reply.reason) == ("refused", "SharedMailbox")
    assert str(root.run.id) in reply.message
    assert child.store.signals == {}


def test_the_owner_checks_the_schema_of_the_childs_node() -> None:
    _, root, child = family_of({"schema": {"type": "object", "properties": {"by": {"type": "string"}}}})
    reply = root.signal("go", {"by": 7}, id="bad")
    assert (reply.outcome, reply.reason) == ("refused", "SchemaMismatch")
    assert "payload.by" in reply.message
    assert root.store.signals["bad"].refused
    assert (child.state("w"), len(root.store.waits)) == ("Waiting", 1)
    root.signal("go", {"by": "me"})
    assert child.status == "Succeeded"


def test_a_buffered_signal_is_given_the_oldest_that_fits_first() -> None:
    family, root = later({"schema": _INTEGER})
    for signal_id, payload in (("bad", "one"), ("first", 1), ("second", 2)):
        root.signal("go", payload, id=signal_id)
    root.complete("p")
    assert root.output("a") == 1
    signals = root.store.signals
    assert "payload" in signals["bad"].refused
    assert [name for name, signal in signals.items() if signal.open] == ["second"]
    assert len(family.sent(SignalGiven)) == 1


def test_ignore_earlier_refuses_what_came_before() -> None:
    _, root = later({"ignoreEarlier": True})
    root.signal("go", 1, id="early")
    root.complete("p")
    assert "earlier" in root.store.signals["early"].refused
    root.signal("go", 2)
    assert root.output("a") == 2


def test_any_of_says_which_name_came_and_closes_all() -> None:
    options = [{"name": "yes"}, {"name": "yes", "schema": _INTEGER}, {"name": "no", "schema": _INTEGER}]
    inner = definition({"name": "w", "waitForEvent": {"anyOf": options}}, subflow="s", output="${nodes.w.output}")
    family = Family(definition({"name": "a", "workflow": {"subflow": "s"}}, {"name": "z"}, subflows={"s": inner}))
    root = family.start()
    assert {(wait.name, wait.alternative) for wait in root.store.waits} == {("yes", 0), ("no", 2)}
    assert root.signal("no", "x").outcome == "refused"
    root.signal("no", 1)
    assert (root.output("a"), root.store.waits) == ({"name": "no", "payload": 1}, [])


def test_the_first_of_equal_names_counts() -> None:
    options = [{"name": "yes"}, {"name": "yes", "schema": _INTEGER}]
    inner = definition({"name": "w", "waitForEvent": {"anyOf": options}}, subflow="s")
    family = Family(definition({"name": "a", "workflow": {"subflow": "s"}}, subflows={"s": inner}))
    root = family.start()
    root.signal("yes", "text")
    assert root.status == "Succeeded"


def test_until_gets_one_signal_at_a_time_and_none_is_lost() -> None:
    family, root = later({"until": "${events.size() == 3}"})
    for number in range(5):
        root.signal("go", number, id=f"s{number}")
    root.complete("p")
    assert [event["payload"] for event in root.output("a")] == [0, 1, 2]
    assert [name for name, signal in root.store.signals.items() if signal.open] == ["s3", "s4"]
    assert [event.place for event in family.sent(WaitOpened)] == [0, *[family.sent(SignalGiven)[0].place] * 2]


def test_until_keeps_its_place_in_the_queue() -> None:
    family, root, child = family_of({"until": "${events.size() == 2}"}, {"name": "b", "waitForEvent": {"name": "go"}})
    assert [wait.node for wait in sorted(root.store.waits, key=lambda wait: wait.seq)] == ["b", "w"]
    root.signal("go", 0)
    assert root.state("b") == "Completed"
    root.signal("go", 1)
    assert [event.place for event in family.sent(WaitOpened)][1] == family.sent(SignalGiven)[0].place
    root.signal("go", 2)
    assert [event["payload"] for event in child.output("w")] == [1, 2]


def test_until_does_not_ignore_what_came_between_two_of_its_signals() -> None:
    family, root, child = family_of({"until": "${events.size() == 2}", "ignoreEarlier": True})
    family.held = True
    root.signal("go", 1)
    root.signal("go", 2)
    assert [signal.open for signal in root.store.signals.values()] == [False, True], "one at a time"
    family.held = False
    family.deliver()
    assert [event["payload"] for event in child.output("w")] == [1, 2]


def test_the_names_of_a_wait_that_goes_on_are_those_it_was_opened_with() -> None:
    family, root, child = family_of({"name": "go-${now}", "until": "${events.size() == 2}"})
    (wait,) = root.store.waits
    family.pass_time(60)
    root.signal(wait.name, 1)
    root.signal(wait.name, 2)
    assert child.status == "Succeeded"


def test_an_error_in_until_fails_the_node_and_leaves_no_wait() -> None:
    _, root, child = family_of({"until": "${events[0].payload.none}"})
    root.signal("go", {})
    assert (child.status, child.run.error and child.run.error.type) == ("Failed", "expression")
    assert root.store.waits == []


def test_the_oldest_wait_wins_across_runs() -> None:
    inner = definition({"name": "w", "waitForEvent": {"name": "go"}}, subflow="s", output="${nodes.w.output}")
    root = definition(
        {"name": "a", "workflow": {"subflow": "s"}},
        {"name": "p"},
        {"name": "b", "dependsOn": ["p"], "workflow": {"subflow": "s"}},
        {"name": "c", "dependsOn": ["b"], "waitForEvent": {"name": "go"}},
        {"name": "d", "dependsOn": ["p"], "waitForEvent": {"name": "go"}},
        subflows={"s": inner},
    )
    family = Family(root)
    member = family.start()
    member.complete("p")
    for number in range(4):
        member.signal("go", number)
    assert [member.output(name) for name in "adbc"] == [0, 1, 2, 3]


def test_a_signal_counts_once_for_ever() -> None:
    _, root, child = family_of()
    root.signal("go", 1, id="s1")
    assert root.signal("go", 2, id="s1").outcome == "already_applied"
    assert child.output("w") == 1


def test_a_wait_is_opened_once() -> None:
    family, root, child = family_of()
    opened = family.sent(WaitOpened)[0]
    assert root.send(opened).outcome == "stale"
    assert len(root.store.waits) == 1
    del child


def test_a_timeout_asks_the_owner_and_takes_the_childs_route() -> None:
    family, root, child = family_of({"timeout": "1h", "onTimeout": {"output": "late"}})
    family.tick(3_600)
    assert (child.output("w"), root.output("a"), root.store.waits) == ("late", "late", [])
    assert [len(family.sent(kind)) for kind in (WaitExpired, WaitTimedOut)] == [1, 1]


def test_a_timeout_without_a_route_is_the_childs_error() -> None:
    family, root, _ = family_of({"timeout": "1h"})
    family.tick(3_600)
    assert root.run.error is not None
    assert (root.status, root.run.error.type) == ("Failed", "timeout")


def test_a_timeout_is_gone_once_the_signal_came() -> None:
    _, root, child = family_of({"timeout": "1h"})
    root.signal("go", 1)
    assert (child.store.timers, child.status) == ({}, "Succeeded")


def test_a_signal_on_its_way_beats_the_expired_deadline() -> None:
    family, root, child = family_of({"timeout": "1h"})
    family.held = True
    root.signal("go", 1)
    family.tick(3_600)
    assert [type(message.event) for message in family.inbox] == [SignalGiven, WaitExpired]
    family.held = False
    family.deliver()
    assert (child.output("w"), family.sent(WaitTimedOut)) == (1, [])


def test_a_deadline_that_expired_while_a_signal_came_counts_if_it_is_not_enough() -> None:
    family, root, child = family_of(
        {"timeout": "1h", "until": "${events.size() == 2}", "onTimeout": {"output": "late"}}
    )
    family.held = True
    root.signal("go", 1)
    family.tick(3_600)
    family.held = False
    family.deliver()
    assert (child.output("w"), root.store.waits) == ("late", [])
    del root


def test_a_buffered_signal_beats_that_deadline_too() -> None:
    family, root, child = family_of({"timeout": "1h", "until": "${events.size() == 2}"})
    family.held = True
    root.signal("go", 1)
    root.signal("go", 2)
    family.tick(3_600)
    family.held = False
    family.deliver()
    assert [event["payload"] for event in child.output("w")] == [1, 2]


def test_a_wait_goes_with_its_node() -> None:
    inner = definition(
        {"name": "w", "waitForEvent": {"name": "go"}},
        {"name": "t"},
        {"name": "j", "dependsOn": ["w", "t"], "join": "any", "cancelRemaining": True},
        subflow="s",
    )
    family = Family(definition({"name": "a", "workflow": {"subflow": "s"}}, {"name": "z"}, subflows={"s": inner}))
    root = family.start()
    root.child("a").complete("t")
    assert (root.child("a").state("w"), root.store.waits) == ("Cancelled", [])
    assert len(family.sent(WaitClosed)) == 1
    assert root.signal("go", 1).reason == "Accepted"


def test_a_wait_goes_with_its_run() -> None:
    _, root, child = family_of()
    child.cancel()
    assert root.store.waits == []


def test_a_wait_goes_with_a_failure_of_its_run() -> None:
    inner = definition({"name": "w", "waitForEvent": {"name": "go"}}, {"name": "t"}, subflow="s")
    node = {"name": "a", "workflow": {"subflow": "s"}, "onError": [{"next": []}]}
    family = Family(definition(node, {"name": "z"}, subflows={"s": inner}))
    root = family.start()
    root.child("a").fail("t")
    assert (root.status, root.store.waits) == ("Running", [])


def test_waits_go_with_the_end_of_the_owner() -> None:
    _, root, child = family_of()
    root.cancel()
    assert (root.store.waits, child.status) == ([], "Cancelled")
    assert root.signal("go", 1).reason == "RunFinished"


def test_a_wait_of_an_ended_owner_is_nobodys() -> None:
    family, root, child = family_of()
    opened = family.sent(WaitOpened)[0]
    root.cancel()
    closed = WaitClosed(child=child.run.id, node="w", index=0)
    expired = WaitExpired(child=child.run.id, node="w", index=0)
    given = SignalGiven(node="w", index=0, signal=None, alternative=0, place=1, names=("go",))  # type: ignore[arg-type]  # nobody looks at it
    assert [root.send(event).outcome for event in (opened, closed, expired)] == ["stale"] * 3
    assert [child.send(event).outcome for event in (given, WaitTimedOut(node="w", index=0))] == ["stale"] * 2


def test_a_suspended_owner_gives_signals_and_a_suspended_child_takes_them() -> None:
    _, root, child = family_of()
    root.suspend()
    root.signal("go", 1)
    assert (child.output("w"), root.output("a"), root.status) == (1, 1, "Suspended")


def test_the_time_of_a_suspended_wait_is_frozen() -> None:
    family, root, child = family_of({"timeout": "1h", "onTimeout": {"output": "late"}})
    family.pass_time(1_800)
    root.suspend()
    family.tick(7_200)
    assert child.state("w") == "Waiting"
    root.resume()
    family.tick(1_799)
    assert child.state("w") == "Waiting"
    family.tick(1)
    assert child.output("w") == "late"


def test_nodes_of_the_same_name_do_not_disturb_each_other() -> None:
    inner = definition({"name": "a", "waitForEvent": {"name": "go"}}, subflow="s", output="${nodes.a.output}")
    root = definition(
        {"name": "a", "waitForEvent": {"name": "go"}},
        {"name": "b", "workflow": {"subflow": "s"}},
        subflows={"s": inner},
    )
    member = Family(root).start()
    member.signal("go", 1)
    assert [wait.child for wait in member.store.waits] == [member.child_id("b")]
    member.signal("go", 2)
    assert (member.output("a"), member.output("b")) == (1, 2)


def test_a_child_by_name_has_its_own_mailbox() -> None:
    other = definition({"name": "w", "waitForEvent": {"name": "go"}})
    family = Family(definition({"name": "a", "workflow": {"name": "other"}}))
    family.definitions["other", 1] = other
    family.deployed["other"] = 1
    root = family.start()
    root.signal("go", 1)
    assert (root.child("a").state("w"), root.store.waits) == ("Waiting", [])
    root.child("a").signal("go", 2)
    assert root.child("a").output("w") == 2


def test_a_batch_decides_as_single_events_do() -> None:
    family, root, child = family_of({"until": "${events.size() == 2}"})
    opened = family.sent(WaitOpened)[0]
    other = WaitOpened(child=root.run.id, subflow="unknown", node="w", index=0, names=("go", "on"))
    family.held = True
    events: list[Event] = [
        root.signalled("go", 1, id="s1"),
        other,
        root.signalled("on", 2, id="s2"),
        WaitOpened(child=child.run.id, subflow="s", node="w", index=0, names=opened.names, place=1),
        WaitClosed(child=child.run.id, node="w", index=0),
        root.signalled("go", 3, id="s3"),
    ]
    replies = root.send_batch(events)
    assert [reply.outcome for reply in replies] == ["applied"] * 6
    assert root.store.waits == []
    assert {name: signal.consumed_by for name, signal in root.store.signals.items()} == {"s1": "w", "s2": "w", "s3": ""}
    assert root.last is not None
    assert [message.run_id for message in root.last.messages] == [child.run.id, root.run.id]


def test_a_wait_of_equal_names_is_opened_again_with_its_names() -> None:
    options = [{"name": "yes"}, {"name": "yes"}, {"name": "no"}]
    event = {"anyOf": options, "until": "${events.size() == 3}"}
    inner = definition({"name": "w", "waitForEvent": event}, subflow="s")
    family = Family(definition({"name": "a", "workflow": {"subflow": "s"}}, subflows={"s": inner}))
    root = family.start()
    root.signal("yes", 1)
    root.signal("no", 2)
    assert {(wait.name, wait.alternative) for wait in root.store.waits} == {("yes", 0), ("no", 2)}
    root.signal("yes", 3)
    assert root.status == "Succeeded"


def test_signals_of_one_object_reach_waits_of_both_runs() -> None:
    inner = definition({"name": "a", "waitForEvent": {"name": "go"}}, subflow="s", output="${nodes.a.output}")
    root = definition(
        {"name": "a", "waitForEvent": {"name": "go"}},
        {"name": "b", "workflow": {"subflow": "s"}},
        subflows={"s": inner},
    )
    member = Family(root).start()
    member.controls(1, signals=(member.signalled("go", 1, id="s1"), member.signalled("go", 2, id="s2")))
    assert (member.output("a"), member.output("b")) == (1, 2)


def test_a_decision_sees_waits_by_their_places() -> None:
    _, root, _ = family_of()
    draft = Draft(root.store.whole(), Context(root.now), root.run)
    (wait,) = draft.waits()
    draft.add_waits([replace(wait, seq=wait.seq - 1, node="before")])
    assert [one.node for one in draft.waits()] == ["before", "w"]


def test_a_wait_that_is_cancelled_by_the_decision_that_opens_it_takes_no_signal() -> None:
    race: list[dict[str, Any]] = [
        {"name": "t"},
        {"name": "w", "dependsOn": ["t"], "waitForEvent": {"name": "go"}},
        {"name": "first", "dependsOn": ["t", "w"], "join": "any", "cancelRemaining": True, "compute": {"v": 1}},
    ]
    after = {"name": "z", "dependsOn": ["a"], "waitForEvent": {"name": "go"}}
    child = {"name": "a", "workflow": {"subflow": "s"}}
    family = Family(definition(child, after, subflows={"s": definition(*race, subflow="s")}))
    root = family.start()
    root.signal("go", 7, id="s1")
    root.child("a").complete("t", 1)
    assert family.sent(WaitOpened) == []
    assert (root.status, root.state("z")) == ("Succeeded", "Completed")
    assert root.store.signals["s1"].consumed_by == "z"
