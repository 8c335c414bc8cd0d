"""What kubelet and Prometheus are told by pods, and how pods end whose database is away."""

from __future__ import annotations

import time
from typing import Any

from e2e.chart.release import Release

WORKER = "partita.dev/worker=shop"
LEADER = "partita.io/leader=true"
ENDED_SECONDS = 25.0
"""Within this long a pod without a database is gone, of the 45 and 60 seconds that it may take; its process itself is
promised to end in five."""


def pod(product: Release, label: str) -> dict[str, Any]:
    """The only pod with this label that is not on its way out."""
    found = [
        each
        for each in product.json("get", "pods", "-l", label)["items"]
        if "deletionTimestamp" not in each["metadata"]
    ]
    assert len(found) == 1, product.explain()
    return dict(found[0])


def restarts(product: Release, label: str) -> int:
    return int(pod(product, label)["status"]["containerStatuses"][0]["restartCount"])


def test_a_worker_is_probed_and_scraped(product: Release) -> None:
    worker = pod(product, WORKER)
    container = worker["spec"]["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    path = f"/api/v1/namespaces/{product.namespace}/pods/{worker['metadata']['name']}:8080/proxy"
    assert product.kubectl("get", "--raw", f"{path}/livez") == "ok\n"
    assert product.kubectl("get", "--raw", f"{path}/readyz") == "ready\n"
    said = product.kubectl("get", "--raw", f"{path}/metrics")
    assert "\npartita_worker_ready 1\n" in said
    assert "\npartita_worker_slots_used 0\n" in said


def test_without_a_database_pods_stay_and_end_soon(product: Release) -> None:
    product.kubectl("scale", "statefulset/partita-postgresql", "--replicas=0")
    product.wait("pod", "condition=Ready=false", "-l", WORKER, seconds=90)
    assert restarts(product, WORKER) == restarts(product, LEADER) == 0
    for label in (WORKER, LEADER):
        begun = time.monotonic()
        name = pod(product, label)["metadata"]["name"]
        product.kubectl("delete", "pod", name, "--timeout=60s", seconds=80)
        took = time.monotonic() - begun
        print(f"the pod with {label} was gone after {took:.1f} s")
        assert took < ENDED_SECONDS
    product.kubectl("scale", "statefulset/partita-postgresql", "--replicas=1")
    for deployment in ("operator", "worker-shop", "worker-held"):
        product.kubectl("rollout", "status", f"deployment/partita-{deployment}", "--timeout=170s", seconds=190)
    product.wait("wfe/partita", "condition=Synced", seconds=90)
