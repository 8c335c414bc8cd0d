"""The status of a WorkflowRun as a pure function."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
import pytest

from partita.domain.manifest import parse_definition
from partita.domain.model import Definition
from partita.domain.state.rows import ErrorInfo, Loop, RunStatus, TimerKind
from partita.engine.projection import ObjectRef, Refusal, SignalSummary, WaitSummary
from partita.kube.status import refusal_status, run_status
from tests.kube.operated import definition, task
from tests.kube.summaries import RUN_ID, T0, at, node, summary


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def wait(
    kind: str, node: str, name: str = "", until: Any = None, dead: str | None = None, child: UUID | None = None
) -> WaitSummary:
    return WaitSummary(kind=kind, name=name, node=node, until=until, dead=dead, child=child)


def test_a_running_run() -> None:
    status = run_status(summary())
    assert status["phase"] == "Running"
    assert status["progress"] == "2/5"
    assert status["runId"] == str(RUN_ID)
    assert status["startedAt"] == "2026-11-29T12:00:00.500Z"
    assert status["finishedAt"] is None
    assert status["output"] is None
    assert conditions(status) == {
        "Accepted": ("True", "Started"),
        "Completed": ("False", "Running"),
        "Succeeded": ("Unknown", "Running"),
        "Suspended": ("False", "NotSuspended"),
        "Synced": ("True", "Synced"),
    }


@pytest.mark.parametrize(
    ("status", "reason", "succeeded"),
    [
        (RunStatus.SUCCEEDED, "", ("True", "Succeeded")),
        (RunStatus.FAILED, "NodeFailed", ("False", "NodeFailed")),
        (RunStatus.CANCELLED, "", ("False", "Cancelled")),
    ],
)
def test_ends(status: RunStatus, reason: str, succeeded: tuple[str, str]) -> None:
    shown = run_status(summary(status=status, reason=reason, finished_at=at(7), error=ErrorInfo("gateway", "502")))
    assert conditions(shown)["Completed"][0] == "True"
    assert conditions(shown)["Succeeded"] == succeeded
    assert shown["finishedAt"] == "2026-11-29T12:00:07.000Z"
    completed = next(each for each in shown["conditions"] if each["type"] == "Completed")
    assert completed["lastTransitionTime"] == "2026-11-29T12:00:07Z"


def test_a_new_generation_is_observed_by_every_condition() -> None:
    shown = run_status(summary(object=ObjectRef(uid="u", namespace="n", name="x", generation=9)))
    assert shown["observedGeneration"] == 9
    assert {each["observedGeneration"] for each in shown["conditions"]} == {9}


def test_what_it_waits_for() -> None:
    waits = (
        wait("deadline", "", until=at(3600)),
        wait("wait", "coolOff", until=at(30)),
        wait("signal", "approval", name="approval"),
        wait("eventTimeout", "approval", until=at(60)),
    )
    assert run_status(summary(waits=waits))["waitingFor"] == "event approval, timer coolOff until 2026-11-29T12:00:30Z"
    many = tuple(wait("signal", f"n{number}", name=f"s{number}") for number in range(5))
    assert run_status(summary(waits=many))["waitingFor"] == "event s0 (n0), event s1 (n1) and 3 more"
    assert run_status(summary(waits=waits, status=RunStatus.FAILED, finished_at=T0))["waitingFor"] is None
    assert run_status(summary(status=RunStatus.SUSPENDED))["waitingFor"] == "resume"


CHILD = UUID("019ad000-0000-7000-8000-00000000000c")


def test_children_that_it_waits_for() -> None:
    ship, pack = wait("child", "ship", name=str(CHILD), child=CHILD), wait("child", "pack")
    assert run_status(summary(waits=(ship,)))["waitingFor"] == "child run of ship"
    assert run_status(summary(waits=(ship, pack)))["waitingFor"] == "child runs of pack, child run of ship"
    asks = wait("signal", "ask", name="answer", child=CHILD)
    assert run_status(summary(waits=(ship, asks)))["waitingFor"] == "event answer (ask, in a child run)"
    nodes = (node("ship", "Waiting", attempt=1, child=CHILD), node("ask", "Waiting"))
    assert run_status(summary(nodes=nodes, waits=(ship, asks)))["nodes"] == [
        {"name": "ship", "state": "Waiting", "attempt": 1, "message": "child run of ship", "runId": str(CHILD)},
        {"name": "ask", "state": "Waiting", "attempt": 1},
    ]


def test_pauses_of_a_loop_and_of_undo() -> None:
    timers = (wait(TimerKind.DELAY, "poll", until=at(60)), wait(TimerKind.DRAIN, "", until=at(30)))
    words = "attempts in flight until 2026-11-29T12:00:30Z, next iteration of poll until 2026-11-29T12:01:00Z"
    assert run_status(summary(waits=timers))["waitingFor"] == words


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (Loop(1_000, born=500, completed=409, failed=3, running=10), "412/1000 · 3 failed · 10 running"),
        (Loop(5, completed=5), "5/5"),
        (Loop(0, born=2, completed=1, running=1), "1 iteration · 1 running"),
        (Loop(0, completed=7), "7 iterations"),
    ],
)
def test_a_loop_is_one_node_with_its_progress(loop: Loop, words: str) -> None:
    (shown,) = run_status(summary(nodes=(node("pack", "Waiting", attempt=0, loop=loop),)))["nodes"]
    assert shown == {"name": "pack", "state": "Waiting", "attempt": 0, "message": words}


def test_a_failed_loop_says_why_after_its_progress() -> None:
    loop = node("pack", "Failed", attempt=0, message="gateway: 502", loop=Loop(9, completed=3, failed=1))
    assert run_status(summary(nodes=(loop,)))["nodes"][0]["message"] == "4/9 · 1 failed; gateway: 502"


def test_the_error_in_its_parts() -> None:
    failed = summary(
        status=RunStatus.FAILED, finished_at=at(1), stage="finally", error=ErrorInfo("card_declined", "code: 51")
    )
    assert run_status(failed)["error"] == {"type": "card_declined", "message": "code: 51"}
    assert (run_status(failed)["stage"], run_status(failed)["message"]) == ("finally", "card_declined: code: 51")
    ending = summary(stage="undo", error=ErrorInfo("boom", "broken"))
    assert (run_status(ending)["stage"], run_status(ending)["error"]) == ("undo", None)
    assert refusal_status(refusal("InvalidInput", waiting=False))["error"] == {"type": "InvalidInput", "message": "why"}
    assert refusal_status(refusal("DefinitionNotFound", waiting=True))["error"] is None


def test_a_suspended_run_says_since_when() -> None:
    shown = run_status(summary(status=RunStatus.SUSPENDED, suspension_at=at(4)))
    suspended = next(each for each in shown["conditions"] if each["type"] == "Suspended")
    assert (suspended["status"], suspended["lastTransitionTime"]) == ("True", "2026-11-29T12:00:04Z")


def test_a_timer_that_was_given_up_shows_as_not_synced() -> None:
    shown = run_status(summary(waits=(wait("wait", "coolOff", dead="boom"),)))
    assert conditions(shown)["Synced"] == ("False", "EngineError")


def test_what_was_given_up_is_named() -> None:
    for kind, words in (("wait", "timer of a"), ("child", "start or end of the child of a")):
        shown = run_status(summary(waits=(wait(kind, "a", dead="boom"),)))
        synced = next(each for each in shown["conditions"] if each["type"] == "Synced")
        assert synced["message"] == f"{words} was given up: boom; try: partita dead-letters list"


def test_nodes_say_why() -> None:
    nodes = (node("charge", "Failed", attempt=3, message="gateway: 502"), node("approval", "Waiting", attempt=0))
    shown = run_status(summary(nodes=nodes, waits=(wait("signal", "approval", name="ok"),)))
    assert shown["nodes"] == [
        {"name": "charge", "state": "Failed", "attempt": 3, "message": "gateway: 502"},
        {"name": "approval", "state": "Waiting", "attempt": 0, "message": "event ok (approval)"},
    ]
    assert shown["message"] == "charge: gateway: 502"


def test_signals_and_their_states() -> None:
    signals = (
        SignalSummary(id="a", state="Consumed", message=""),
        SignalSummary(id="b", state="Refused", message="payload: by is missing"),
    )
    assert run_status(summary(signals=signals))["signals"] == [
        {"id": "a", "state": "Consumed"},
        {"id": "b", "state": "Refused", "message": "payload: by is missing"},
    ]


def test_only_an_object_is_an_output() -> None:
    assert run_status(summary(output={"a": 1}))["output"] == {"a": 1}
    assert run_status(summary(output=[1]))["output"] is None


def test_controls_that_have_no_effect_are_named() -> None:
    assert conditions(run_status(summary(), unsupported=("retry",)))["Accepted"] == ("True", "ControlNotSupported")


def test_the_message_names_them_too_after_what_went_wrong() -> None:
    note = "spec.hold, spec.retry: not supported by this version, has no effect"
    assert run_status(summary(), unsupported=("hold", "retry"))["message"] == note
    failed = summary(status=RunStatus.FAILED, finished_at=at(1), reason="NodeFailed", error=ErrorInfo("boom", "broken"))
    assert run_status(failed, unsupported=("hold", "retry"))["message"] == f"boom: broken; {note}"
    assert run_status(failed)["message"] == "boom: broken"


def test_the_largest_status_stays_within_its_limit_and_keeps_every_signal() -> None:
    run = summary(
        status=RunStatus.FAILED,
        finished_at=at(1),
        reason="NodeFailed",
        error=ErrorInfo("e" * 63, "e" * 3000),
        nodes=tuple(node("n" * 63, "Failed", message="é" * 1024) for _ in range(20)),
        signals=tuple(SignalSummary(id=f"{n:063}", state="Refused", message="x" * 1024) for n in range(64)),
        output={"text": "o" * 2000},
    )
    shown = run_status(run)
    assert len(orjson.dumps(shown)) <= 16_384
    assert [signal["id"] for signal in shown["signals"]] == [f"{n:063}" for n in range(64)]
    assert conditions(shown)["Succeeded"] == ("False", "NodeFailed")


def test_a_large_status_gives_up_node_messages_first() -> None:
    run = summary(nodes=tuple(node(f"n{n}", "Failed", message="x" * 1024) for n in range(20)), output={"a": 1})
    shown = run_status(run)
    assert len(shown["nodes"]) == 20
    assert all(len(each["message"]) <= 200 for each in shown["nodes"])
    assert shown["output"] == {"a": 1}


def refusal(reason: str, *, waiting: bool) -> Refusal:
    ref = ObjectRef(uid="u", namespace="shop", name="order-1", generation=2)
    return Refusal(object=ref, reason=reason, message="why", waiting=waiting, created_at=T0, now=at(1))


def test_a_run_that_waits_for_its_definition_is_pending() -> None:
    shown = refusal_status(refusal("DefinitionNotFound", waiting=True))
    assert (shown["phase"], shown["waitingFor"], shown["finishedAt"]) == ("Pending", "its definition", None)
    assert conditions(shown)["Accepted"] == ("False", "DefinitionNotFound")
    assert conditions(shown)["Completed"][0] == "False"
    assert conditions(shown)["Succeeded"][0] == "Unknown"


def test_a_refused_run_has_failed_for_good() -> None:
    shown = refusal_status(refusal("InvalidInput", waiting=False))
    assert shown["phase"] == "Failed"
    assert conditions(shown)["Completed"] == ("True", "InvalidInput")
    assert conditions(shown)["Succeeded"] == ("False", "InvalidInput")
    assert {each["observedGeneration"] for each in shown["conditions"]} == {2}


def _flow() -> Definition:
    nodes = [task("zeta", undo={"task": {"type": "echo"}}), task("alpha"), task("mid", dependsOn=["alpha"])]
    found, problems = parse_definition(definition("flow", nodes, **{"finally": {"nodes": [task("audit")]}}))
    assert found is not None, problems
    return found


def test_nodes_stand_in_the_order_of_the_definition_with_their_stages() -> None:
    shown = (
        node("zeta~undo", "Failed"),
        node("audit", "Queued"),
        node("alpha", "Completed"),
        node("zeta", "Completed"),
    )
    status = run_status(summary(nodes=shown), flow=_flow())
    assert [(each["name"], each.get("stage", "main"), each["state"]) for each in status["nodes"]] == [
        ("zeta", "main", "Completed"),
        ("alpha", "main", "Completed"),
        ("mid", "main", "Pending"),
        ("zeta~undo", "undo", "Failed"),
        ("audit", "finally", "Queued"),
    ]


def test_a_status_without_room_keeps_the_nodes_that_people_look_for() -> None:
    first = (node("zeta~undo", "Failed"), node("mid", "Queued"))
    more = tuple(node(f"n{number}", "Completed", message="x") for number in range(18))
    shorter = run_status(summary(nodes=(*first, *more)), 1_750, flow=_flow())
    assert [each["name"] for each in shorter["nodes"]] == ["mid", "n0", "n1", "n2", "zeta~undo"]


def test_the_message_says_what_could_not_be_undone() -> None:
    undo = node("pay~undo", "Failed", message="timeout: late")
    nodes = (node("pay", "Completed"), undo, node("no", "Failed", message="e: m"))
    failed = summary(nodes=nodes, status=RunStatus.FAILED, error=ErrorInfo("declined", "51"), finished_at=at(7))
    assert run_status(failed)["message"] == "declined: 51; undo failed: pay~undo (timeout: late)"
    assert run_status(failed)["error"] == {"type": "declined", "message": "51"}
    going = summary(nodes=nodes, stage="undo")
    assert run_status(going)["message"] == "no: e: m; undo failed: pay~undo (timeout: late)"
