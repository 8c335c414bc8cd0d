"""What the probes are told, over HTTP, and what they are told of an event loop that stands still."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable

import pytest

from partita.engine.service import TickingService
from partita.engine.supervisor import ServiceReport, ServiceState, Supervisor
from partita.kube import metric_families as families
from partita.kube.vitals import NO_DATABASE, STANDING_SECONDS, Vitals
from partita.probes import vitals as vitals_module
from partita.probes.health import answer_of, serving
from partita.probes.vitals import beating
from tests.probing import ask, free_port
from tests.waiting import until


def report(state: ServiceState, round_age: float = 0.0) -> Callable[[], tuple[ServiceReport, ...]]:
    return lambda: (ServiceReport("projector", state, 3, "", 17, round_age),)


async def test_every_path() -> None:
    vitals, port = Vitals(), free_port()
    async with serving("127.0.0.1", port, vitals):
        assert await asyncio.to_thread(ask, port, "/readyz") == (503, "starting\n")
        for state in ("standby", "leader"):
            vitals.become(state)
            assert await asyncio.to_thread(ask, port, "/readyz") == (200, f"{state}\n")
        assert await asyncio.to_thread(ask, port, "/healthz") == (200, "leader\n")
        assert await asyncio.to_thread(ask, port, "/livez?verbose") == (200, "ok\n")
        code, text = await asyncio.to_thread(ask, port, "/metrics")
        assert code == 200
        assert "\npartita_operator_leader 1\n" in text
        assert (await asyncio.to_thread(ask, port, "/elsewhere"))[0] == 404
        assert (await asyncio.to_thread(ask, port, "/livez", "POST"))[0] == 405
        assert await asyncio.to_thread(ask, port, "/livez", "HEAD") == (200, "")


async def test_port_0_serves_nothing_and_a_taken_port_is_an_error() -> None:
    async with serving("127.0.0.1", 0, Vitals()):
        assert not [thread for thread in threading.enumerate() if thread.name == "partita:health"]
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        async with serving("127.0.0.1", taken.getsockname()[1], Vitals()):
            pass


async def test_an_event_loop_that_stands_still_is_told_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals_module, "STALLED_SECONDS", 0.3)
    monkeypatch.setattr(vitals_module, "BEAT_SECONDS", 0.02)
    vitals, port = Vitals(), free_port()
    answers: list[tuple[int, str]] = []

    def watch() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and (not answers or answers[-1][0] == 200):
            answers.append(ask(port, "/livez"))

    async with serving("127.0.0.1", port, vitals), beating(vitals):
        assert await asyncio.to_thread(ask, port, "/livez") == (200, "ok\n")
        watcher = threading.Thread(target=watch)
        watcher.start()
        watcher.join()  # this thread is the loop: it stands still until the other has been told
        assert answers[-1][0] == 500
        assert answers[-1][1].startswith("the event loop has not turned for")

        async def alive() -> bool:
            return (await asyncio.to_thread(ask, port, "/livez"))[0] == 200

        await until(alive, what="the loop to turn again")


def test_a_part_that_has_ended_is_trouble_and_one_that_fails_is_not() -> None:
    vitals = Vitals()
    vitals.become("leader")
    for state, code in (
        (ServiceState.RUNNING, "200"),
        (ServiceState.BACKING_OFF, "200"),
        (ServiceState.STOPPED, "500"),
    ):
        vitals.reports = report(state)
        assert answer_of("/livez", vitals).status.startswith(code)
    assert answer_of("/livez", vitals).text == "projector: ended although nobody ended it\n"
    assert 'partita_operator_duty_up{duty="projector"} 0\n' in vitals.text()
    assert 'partita_operator_duty_restarts_total{duty="projector"} 3\n' in vitals.text()
    assert 'partita_operator_duty_rounds_total{duty="projector"} 17\n' in vitals.text()
    vitals.become("standby")
    assert answer_of("/livez", vitals).status == "200 OK"
    assert vitals.metrics.value(families.DUTIES.up, "projector") is None


def test_a_duty_that_stands_still_is_told_and_no_reason_for_a_restart() -> None:
    vitals = Vitals()
    vitals.become("leader")
    vitals.reports = report(ServiceState.RUNNING, STANDING_SECONDS - 1)
    assert answer_of("/readyz", vitals).text == "leader\n"
    vitals.reports = report(ServiceState.RUNNING, STANDING_SECONDS + 1)
    answer = answer_of("/readyz", vitals)
    assert answer.status.startswith("503")
    assert answer.text == "leader\nprojector: in one round for 1801 s\n"
    assert 'partita_operator_duty_round_age_seconds{duty="projector"} 1801\n' in vitals.text()
    assert answer_of("/livez", vitals).status == "200 OK"


def test_a_leader_without_its_database_is_ready_and_says_so() -> None:
    vitals = Vitals()
    vitals.become("leader")
    vitals.metrics.set(families.DATABASE_UP, 0)
    assert answer_of("/readyz", vitals).status == "200 OK"
    assert answer_of("/readyz", vitals).text == f"leader\n{NO_DATABASE}\n"
    vitals.metrics.set(families.DATABASE_UP, 1)
    assert answer_of("/readyz", vitals).text == "leader\n"
    vitals.metrics.set(families.DATABASE_UP, 0)
    vitals.become("standby")
    assert answer_of("/readyz", vitals).text == "standby\n"


class Cancelled(TickingService):
    """A duty that something has cancelled from inside, which no supervisor restarts."""

    async def tick(self) -> float:
        raise asyncio.CancelledError


async def test_the_supervisor_reports_a_task_that_is_gone() -> None:
    supervisor = Supervisor()
    supervisor.start(Cancelled("lost"))

    async def stopped() -> bool:
        return [each.state for each in supervisor.report()] == [ServiceState.STOPPED]

    await until(stopped, what="the report to say so")
    await supervisor.stop()
