"""Which provider serves: the cluster that the person names, else kind, else the control plane built from source."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from e2e.cluster.contract import Cluster, PodCluster, RestartableCluster
from e2e.cluster.controlplane import ControlPlane
from e2e.cluster.errors import ClusterError, ProviderUnavailable
from e2e.cluster.explicit import ExplicitCluster
from e2e.cluster.kind import KindCluster
from e2e.cluster.node import Node
from e2e.cluster.progress import Say, quietly
from e2e.cluster.state import Record

PROVIDERS: tuple[type[ExplicitCluster | KindCluster | ControlPlane], ...] = (ExplicitCluster, KindCluster, ControlPlane)
"""In the order in which they are asked."""

POD_PROVIDERS: tuple[type[KindCluster | Node], ...] = (KindCluster, Node)
"""The same, for a cluster that runs pods."""


def choose(home: Path, name: str = "e2e", say: Say = quietly) -> Cluster:
    """Return the cluster in `home` if one was started there, else one of the first provider that works here.

    The cluster is not started. Raises ProviderUnavailable naming what every provider misses.
    """
    if (known := find(home, say)) is not None:
        return known
    return _first(PROVIDERS, "no Kubernetes to test against")(home, name, say)


def choose_pods(home: Path, name: str = "e2e", say: Say = quietly) -> PodCluster:
    """Return a cluster that runs pods; not started yet. Raises ProviderUnavailable as `choose` does."""
    return _first(POD_PROVIDERS, "no Kubernetes that runs pods")(home, name, say)


def choose_restartable(home: Path, name: str = "e2e", say: Say = quietly) -> RestartableCluster:
    """Return a cluster whose API server can be restarted; not started yet. Raises ProviderUnavailable."""
    if (problem := ControlPlane.problem()) is not None:
        raise ProviderUnavailable(f"no Kubernetes whose API server can be restarted: {problem}")
    return ControlPlane(home, name, say)


def find(home: Path, say: Say = quietly) -> Cluster | None:
    """Return the cluster that was started in a folder, or None."""
    record = Record.read(home)
    if record is None:
        return None
    for provider in (*PROVIDERS, Node):
        if provider.provider == record.provider:
            return provider(home, record.name, say)
    raise ClusterError(f"{home}: made by an unknown provider, {record.provider!r}")


P = TypeVar("P", bound=ExplicitCluster | KindCluster | ControlPlane)


def _first(providers: Sequence[type[P]], lack: str) -> type[P]:
    problems: list[str] = []
    for provider in providers:
        if (problem := provider.problem()) is None:
            return provider
        problems.append(f"    {provider.provider}: {problem}")
    raise ProviderUnavailable(f"{lack}; one of these must be put right:\n" + "\n".join(problems))
