"""The scripts that measure the Kubernetes path run with tiny sizes; what the times are is never asserted."""

from __future__ import annotations

import pytest

from e2e.cluster.contract import Cluster
from tests.bench.test_scripts import KUBE, bench, figures

PARTS = ("cpu", "operator_cpu", "worker_cpu", "clients_cpu", "postgres_cpu", "operator_memory", "writes")
FIGURES = {
    "kube_path": {
        "kube_path",
        *(f"kube_path_{part}" for part in ("applied", "writes", "operator_cpu", "worker_cpu", "operator_memory")),
    },
    "kube_rate": {"kube_rate", *(f"kube_rate_{part}" for part in PARTS)},
    "kube_scale": {
        *("kube_ready", "kube_ready_leader", "kube_ready_answers", "kube_ready_cpu", "kube_ready_memory"),
        *("kube_idle_memory", "kube_idle_cpu"),
        *("kube_signal", "kube_signal_longest", "kube_signals_at_once", "kube_signals_delivered"),
    },
}


def test_every_script_of_the_path_is_covered() -> None:
    assert set(FIGURES) == KUBE


@pytest.mark.parametrize("script", sorted(FIGURES))
def test_script_prints_its_figures(crds: Cluster, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """On the cluster that the tests share, of whose own programs the script then knows nothing."""
    monkeypatch.setenv("PARTITA_E2E_KUBECONFIG", str(crds.kubeconfig))
    found = figures(bench(None, script, "--quick"))
    assert set(found) == FIGURES[script]
    if script == "kube_rate":
        assert found["kube_rate_writes"]["setting"]["most"] <= 3
    if script == "kube_scale":
        assert found["kube_signals_delivered"]["value"] == 60
