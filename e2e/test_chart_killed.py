"""Pods whose main process is killed as the kernel kills one that takes too much memory: nothing is lost or doubled.

Stands after the tests of an installation that nothing has happened to, since containers are started again here.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from e2e.chart.release import Release
from e2e.chart.runs import GO, recorded, runs_of, steps_of, succeed
from e2e.cluster import ClusterError
from e2e.cluster.waiting import wait_until

FOLLOWED_SECONDS = 60
"""The aim is 20; what it took is printed."""
HOLDER = ("get", "lease", "partita-operator", "-o", "jsonpath={.spec.holderIdentity}")


def container(product: Release, pod: str, name: str) -> tuple[str, int]:
    """The id of a pod's container, and how often it was started again."""
    statuses = product.json("get", "pod", pod)["status"]["containerStatuses"]
    (status,) = [each for each in statuses if each["name"] == name]
    return status["containerID"].rpartition("/")[2], status["restartCount"]


def main_process(identity: str) -> int:
    """The pid, on this machine, of the first process of a container; skips where it is not to be seen."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if identity in (folder / "cgroup").read_text() and _first_inside(folder):
                return int(folder.name)
        except OSError:  # it has ended
            continue
    pytest.skip(
        "the pods' processes are not to be seen from here, as where a Docker engine runs in a machine of its own"
    )


def _first_inside(process: Path) -> bool:
    numbers = [line for line in (process / "status").read_text().splitlines() if line.startswith("NSpid:")]
    return numbers[0].split()[-1] == "1"


def kill(product: Release, pod: str, name: str) -> None:
    """Kill the main process of a pod's container."""
    identity, restarts = container(product, pod, name)
    assert restarts == 0
    os.kill(main_process(identity), signal.SIGKILL)


def started_again(product: Release, pod: str, name: str) -> None:
    """Wait until the kubelet has started the container again, once, and its pod is ready."""
    wait_until(lambda: container(product, pod, name)[1] == 1, f"{pod} is started again", seconds=FOLLOWED_SECONDS)
    product.wait(f"pod/{pod}", "condition=Ready")


def holder(product: Release, *former: str) -> str:
    """Who leads by the Lease, once that is none of these."""
    found = [""]

    def led() -> bool:
        found[0] = product.kubectl(*HOLDER)
        return found[0] not in ("", *former)

    wait_until(led, "another process leads", seconds=FOLLOWED_SECONDS)
    return found[0]


def test_a_killed_leader_is_followed_and_nothing_is_lost_or_doubled(product: Release) -> None:
    waiting = [f"waits-{number}" for number in range(4)]
    under_way = [f"under-way-{number}" for number in range(20)]
    product.kubectl("apply", "-f", "-", stdin=runs_of("gate", *waiting))
    for name in waiting:
        product.wait(f"wfr/{name}", "jsonpath={.status.waitingFor}")
    former = holder(product)
    pod = former.rpartition("_")[0]
    product.kubectl("apply", "-f", "-", stdin=runs_of("steps", *under_way))
    kill(product, pod, "operator")
    begin = time.monotonic()
    for name in waiting:  # while nobody leads
        product.kubectl("patch", "wfr", name, "--type=json", "-p", GO)
    holder(product, former)
    print(f"\nanother operator led {time.monotonic() - begin:.1f} s after the leader was killed (aim: 20 s)")
    succeed(product, *waiting, *under_way)
    print(f"all runs had ended {time.monotonic() - begin:.1f} s after it")
    gates = [(name, each) for name in waiting for each in ("after", "before")]
    assert recorded(product.sql, *waiting, *under_way) == sorted([*gates, *steps_of(*under_way)])
    started_again(product, pod, "operator")


def test_a_task_of_a_killed_worker_is_done_again(product: Release) -> None:
    pod = product.kubectl("get", "pods", "-l", "partita.dev/worker=held", "-o", "jsonpath={.items[*].metadata.name}")
    product.kubectl("apply", "-f", "-", stdin=runs_of("held", "held-1"))
    wait_until(lambda: holds(product, pod, 1), "the worker is in the middle of the task", seconds=FOLLOWED_SECONDS)
    kill(product, pod, "worker")
    begin = time.monotonic()
    product.wait("wfr/held-1", "condition=Succeeded", seconds=FOLLOWED_SECONDS)
    print(f"\nthe task was done again {time.monotonic() - begin:.1f} s after its worker was killed (lease: 3 s)")
    assert product.kubectl("get", "wfr", "held-1", "-o", "jsonpath={.status.output.attempt}") == "2"
    assert recorded(product.sql, "held-1") == [("held-1", "hold")]
    lost = "SELECT node FROM partita.run_history JOIN partita.workflow_runs ON id = run_id WHERE name = 'held-1'"
    assert product.sql(f"{lost} AND event = 'LeaseLost'") == [["hold"]]
    started_again(product, pod, "worker")
    assert holds(product, pod, 2)


def holds(product: Release, pod: str, attempt: int) -> bool:
    """Whether the pod's container, as it is now, has begun an attempt."""
    try:
        return f"holds held-1, attempt {attempt}\n" in product.kubectl("logs", pod, "-c", "worker")
    except ClusterError:
        return False
