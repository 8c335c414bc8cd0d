"""What a worker says of itself, state by state."""

from __future__ import annotations

import socket

import pytest

from partita.domain.errors import InvalidError
from partita.engine.supervisor import ServiceReport, ServiceState
from partita.probes.health import answer_of
from partita.settings import WorkerSettings
from partita.worker.attempts import HandedBack
from partita.worker.tally import Tally
from partita.worker.vitals import HANGING_SECONDS, WorkerVitals, probed
from tests.probing import says, values

SETTINGS = WorkerSettings(slots=4, lease_ms=60_000, heartbeat_ms=10_000)


class Worker:
    """What is observed of a worker."""

    def __init__(self) -> None:
        self.draining = False
        self.tally = Tally()
        self.age: float | None = None
        self.services: tuple[ServiceReport, ...] = ()

    def used(self) -> int:
        return 3

    def heartbeat_age(self) -> float | None:
        return self.age

    def report(self) -> tuple[ServiceReport, ...]:
        return self.services


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def heartbeat(state: ServiceState = ServiceState.RUNNING, round_age: float = 0.0) -> ServiceReport:
    return ServiceReport("heartbeat", state, 0, "", 1, round_age)


def watched() -> tuple[WorkerVitals, Worker, Clock]:
    clock, worker = Clock(), Worker()
    vitals = WorkerVitals(SETTINGS, clock=clock)
    vitals.watch(worker, lambda: (ServiceReport("sweeper", ServiceState.RUNNING, 0, "", 1, HANGING_SECONDS * 9),))
    return vitals, worker, clock


def test_a_worker_is_ready_while_its_heartbeats_are_answered() -> None:
    early = WorkerVitals(SETTINGS)
    assert (early.state, answer_of("/readyz", early).status[:3]) == ("starting", "503")
    vitals, worker, _ = watched()
    for age, code, state, words in (
        (None, "503", "starting", "starting: the database has not been reached yet\n"),
        (0.5, "200", "ready", "ready\n"),
        (60.0, "200", "ready", "ready\n"),
        (61.0, "503", "unreachable", "database: answered no heartbeat for 61 s; expected one every 10 s\n"),
    ):
        worker.age = age
        answer = answer_of("/readyz", vitals)
        assert (answer.status[:3], vitals.state, answer.text) == (code, state, words)
        assert answer_of("/livez", vitals).status == "200 OK", "nothing of this is mended by a restart"
        assert f"\npartita_worker_ready {int(code == '200')}\n" in vitals.text()


@pytest.mark.parametrize("who", ["worker", "process"])
def test_who_stops_is_not_ready(who: str) -> None:
    vitals, worker, _ = watched()
    worker.age = 0.5
    worker.draining = who == "worker"
    if who == "process":
        vitals.stop()
    answer = answer_of("/readyz", vitals)
    assert (answer.status[:3], answer.text) == ("503", "draining: takes nothing new\n")


def test_only_a_restart_helps() -> None:
    vitals, worker, clock = watched()
    worker.services = (heartbeat(),)
    vitals.beat()
    clock.now = 60.0
    assert answer_of("/livez", vitals).text == "ok\n", "its leases last as long"
    clock.now = 61.0
    assert answer_of("/livez", vitals).text.startswith("the event loop has not turned for 61 s")
    vitals.beat()
    worker.services = (heartbeat(ServiceState.STOPPED),)
    assert answer_of("/livez", vitals).text == "heartbeat: ended although nobody ended it\n"
    worker.services = (heartbeat(ServiceState.BACKING_OFF, HANGING_SECONDS - 1),)
    assert answer_of("/livez", vitals).text == "ok\n", "and a shared duty that hangs is done by others"
    worker.services = (heartbeat(round_age=HANGING_SECONDS + 1),)
    assert answer_of("/livez", vitals).text == "heartbeat: in one round for 901 s\n"


def test_the_metrics() -> None:
    vitals, worker, _ = watched()
    assert "partita_worker_heartbeat_age_seconds" not in values(vitals.text())
    worker.age, worker.services = 1.25, (heartbeat(),)
    worker.tally.ended(HandedBack(), 0.5)
    worker.tally.ended(HandedBack(), 0.25)
    worker.tally.took("gpu", "claim")
    worker.tally.claims["empty"] += 7
    worker.tally.reports["stale"] += 1
    said = values(vitals.text())
    for name, value in {
        "partita_worker_heartbeat_age_seconds": 1.25,
        "partita_worker_slots": 4,
        "partita_worker_slots_used": 3,
        'partita_worker_attempts_total{outcome="handed_back"}': 2,
        'partita_worker_attempt_seconds_total{outcome="handed_back"}': 0.75,
        'partita_worker_tasks_taken_total{queue="gpu",way="claim"}': 1,
        'partita_worker_claims_total{result="empty"}': 7,
        'partita_worker_reports_total{answer="stale"}': 1,
        'partita_worker_duty_up{duty="heartbeat"}': 1,
        'partita_worker_duty_up{duty="sweeper"}': 1,
    }.items():
        assert said[name] == value, name


async def test_a_port_that_is_taken_is_named_with_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = WorkerSettings(health_bind=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(InvalidError, match=r"PARTITA_WORKER_HEALTH_BIND.*in use.*expected a free ADDRESS:PORT"):
            async with probed(settings, WorkerVitals(settings)):
                pass


async def test_ipv6() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as probe:
        port = probe.getsockname()[1]
    settings = WorkerSettings(health_bind=f"[::]:{port}")
    async with probed(settings, WorkerVitals(settings)):
        await says(port, "/readyz", 503, "starting")
