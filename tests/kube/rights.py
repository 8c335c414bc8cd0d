"""ServiceAccounts that have exactly the rights which the operator's documentation lists, and kubeconfigs for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from e2e.cluster.contract import Cluster
from tests.kube.operated import Object

Rule = Mapping[str, Sequence[str]]
OURS: Final = "partita.dev"


def rule(group: str, resources: str, verbs: str, *names: str) -> Object:
    """A rule of a role; words are separated by blanks."""
    made: Object = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**made, "resourceNames": list(names)} if names else made


WATCHED: Final = (
    rule(OURS, "workflowdefinitions", "get list watch patch"),
    rule(OURS, "workflowdefinitions/status workflowruns/status", "patch"),
    rule(OURS, "workflowruns", "get list watch patch delete"),
    rule(OURS, "workflowengines", "list watch"),
    rule("", "events", "create get patch"),
)
"""In every namespace that is watched, the operator's own included."""
OWN: Final = (
    rule("coordination.k8s.io", "leases", "get create update"),
    rule(OURS, "workflowengines", "get create patch"),
    rule(OURS, "workflowengines/status", "patch"),
    rule("", "pods", "patch"),
)
"""In the operator's own namespace."""
CLUSTER: Final = (
    *WATCHED,
    rule("", "namespaces", "get", "kube-system"),
    rule("apiextensions.k8s.io", "customresourcedefinitions", "list watch"),
)
"""In the whole cluster, for an operator that watches all namespaces."""


def account(cluster: Cluster, namespace: str, folder: Path) -> Path:
    """Make a ServiceAccount ``operator`` and return a kubeconfig that has its token and nothing else."""
    cluster.run_kubectl("-n", namespace, "create", "serviceaccount", "operator")
    token = cluster.run_kubectl("-n", namespace, "create", "token", "operator", "--duration=1h").strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text("utf-8"))
    config["users"] = [{"name": "operator", "user": {"token": token}}]
    for context in config["contexts"]:
        context["context"]["user"] = "operator"
    path = folder / "operator.kubeconfig"
    path.write_text(yaml.safe_dump(config), "utf-8")
    return path


def grant(cluster: Cluster, namespace: str, rules: Sequence[Rule], *, owner: str = "") -> None:
    """Give these rights in a namespace to the account ``operator`` of that namespace or of ``owner``'s."""
    _bind(cluster, "Role", {"name": "operator", "namespace": namespace}, rules, owner or namespace)


def grant_everywhere(cluster: Cluster, name: str, rules: Sequence[Rule], *, owner: str) -> None:
    """Give these rights in the whole cluster."""
    _bind(cluster, "ClusterRole", {"name": name}, rules, owner)


def _bind(cluster: Cluster, kind: str, metadata: Object, rules: Sequence[Rule], owner: str) -> None:
    group = "rbac.authorization.k8s.io"
    role: dict[str, Any] = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": kind, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": owner}],
    }
    documents = {"apiVersion": "v1", "kind": "List", "items": [role, binding]}
    cluster.run_kubectl("apply", "-f", "-", stdin=json.dumps(documents))
