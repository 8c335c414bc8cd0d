"""A real Kubernetes API for tests and the demo, on whatever this machine has.

    with running(choose(tmp_path)) as cluster:
        cluster.apply(Path("crds"))
        cluster.run_kubectl("get", "crds")

`choose` takes, in this order, the cluster that PARTITA_E2E_KUBECONFIG names, kind where a Docker engine answers, and a
control plane built from Go modules. From a shell: `python -m e2e.cluster up`. Invariant: a person's own kubeconfig is
neither read nor written unless that variable names it.
"""

from e2e.cluster.choice import choose, choose_pods, choose_restartable, find
from e2e.cluster.contract import Cluster, PodCluster, RestartableCluster
from e2e.cluster.errors import BuildError, ClusterError, ProviderUnavailable
from e2e.cluster.owned import running
from e2e.cluster.progress import to_stderr

__all__ = [
    "BuildError",
    "Cluster",
    "ClusterError",
    "PodCluster",
    "ProviderUnavailable",
    "RestartableCluster",
    "choose",
    "choose_pods",
    "choose_restartable",
    "find",
    "running",
    "to_stderr",
]
