"""Who works in the Kubernetes path: processor time of each part, and what the API server was asked.

Invariant: both only grow; what a measurement cost is the difference of two readings. Trade-off: the API server's and
etcd's time is known only where the control plane is a set of processes of this machine, and is absent elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from bench.cpu import seconds, used
from bench.kube_stage import Stage
from bench.load import postmaster
from e2e.cluster import Cluster
from e2e.cluster.processes import Running

_REQUESTS: Final = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABELS: Final = re.compile(r'(\w+)="([^"]*)"')
CLIENTS: Final = "clients"
"""This process: those who send, and the watcher."""
POSTGRES: Final = "postgres"


class Parts:
    """The processes that share the machine, by name. ``more``: process ids of those that the cluster does not know."""

    def __init__(self, cluster: Cluster, server: int | None, more: Mapping[str, int]) -> None:
        programs: Mapping[str, Running] = getattr(cluster, "programs", dict)()
        self._pids = {**{name: program.pid for name, program in programs.items()}, **more, CLIENTS: os.getpid()}
        self._postmaster = server

    def read(self) -> dict[str, float]:
        """Seconds of processor time so far."""
        found = {name: seconds(pid) for name, pid in self._pids.items()}
        if self._postmaster is not None:
            found[POSTGRES] = used(self._postmaster).postgres
        return found


async def parts_of(stage: Stage, **more: int) -> Parts:
    """All parts of a measurement; ``more``: the processes that were started for it."""
    return Parts(stage.cluster, await postmaster(stage.observer), more)


async def requests(cluster: Cluster) -> Counter[str]:
    """Requests about WorkflowRuns that the API server has answered, by verb and subresource."""
    text = await asyncio.to_thread(cluster.run_kubectl, "get", "--raw", "/metrics")
    found: Counter[str] = Counter()
    for labels, count in _REQUESTS.findall(text):
        of = dict(_LABELS.findall(labels))
        if of.get("resource") == "workflowruns":
            found[f"{of['verb']} {of['subresource']}".strip()] += int(float(count))
    return found
