"""The roles that the chart makes are enough for everything that the operator does, and hold nothing besides."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.cluster.contract import Cluster
from partita.kube import retention
from partita.kube.options import OperatorOptions
from partita.kube.resources import PODS
from partita.settings import Settings
from tests.chart.helm import CHART, Helm, Object, of_kind
from tests.kube import operated, rights
from tests.kube.test_leader_label import POD
from tests.kube.test_rights import denied, everything_works

WITHOUT_PODS = (
    "database.url=postgresql://a@b/c",
    "operator.replicas=0",
    "operator.serviceAccount.create=false",
    "operator.serviceAccount.name=operator",
)
KINDS = tuple(f"workflow{kind}.partita.dev" for kind in ("definitions", "runs", "engines"))
MODES = {"cluster": (), "namespaced": ("clusterUid=this-cluster",)}


def rights_of(rules: Iterable[rights.Rule]) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of every right."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def granted(rendered: list[Object], kind: str, name: str) -> set[tuple[str, str, str]]:
    """Rights of the operator's roles of a name."""
    return rights_of(rule for role in of_kind(rendered, kind, name) for rule in role["rules"])


def test_the_roles_hold_what_the_operator_uses_and_nothing_else(helm: Helm) -> None:
    everywhere = helm.trial()
    assert granted(everywhere, "ClusterRole", "partita-system-partita-operator") == rights_of(rights.CLUSTER)
    assert granted(everywhere, "Role", "partita-operator") == rights_of(rights.OWN)
    some = helm.trial("--set", "watchNamespaces={a}", "--set", "clusterUid=b")
    assert granted(some, "Role", "partita-operator-objects") == rights_of(rights.WATCHED)
    assert granted(some, "Role", "partita-operator") == rights_of(rights.OWN)


@pytest.mark.parametrize("mode", list(MODES))
async def test_the_operator_works_with_the_roles_of_the_chart(
    helm: Helm,
    cluster: Cluster,
    namespace: str,
    settings: Settings,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    caplog.set_level(logging.DEBUG, "partita.kube")
    monkeypatch.setattr(retention, "INTERVAL_SECONDS", 0.2)
    given = [*WITHOUT_PODS, *MODES[mode], *([f"watchNamespaces={{{namespace}}}"] if mode == "namespaced" else [])]
    live = replace(helm, environment=cluster.environment())
    account = rights.account(cluster, namespace, tmp_path)
    try:
        arguments = [word for each in given for word in ("--set", each)]
        live("install", "partita", str(CHART), "--namespace", namespace, "--set", "crds.keep=false", *arguments)
        established = ("--for=condition=Established", "--timeout=30s")
        cluster.run_kubectl("wait", *established, *(f"crd/{name}" for name in KINDS))
        changes = {"cluster_uid": "this-cluster"} if mode == "namespaced" else {"watch_namespaces": ()}
        chosen = operated.operator_settings(settings, namespace, events_after_ms=300, **changes)
        options = OperatorOptions(kubeconfig=account, pod_namespace=namespace, pod_name="operator-1")
        async with operated.namespace_of(cluster, namespace) as here:
            await here.client.create(PODS.path(namespace), POD)
            async with operated.operating(here, chosen, options), operated.working(chosen):
                await everything_works(here)
    finally:
        live("uninstall", "partita", "--namespace", namespace, "--ignore-not-found", "--wait", "--timeout=90s")
        cluster.run_kubectl("wait", "--for=delete", "--timeout=60s", *(f"crd/{name}" for name in KINDS))
    assert denied(caplog) == []
