"""The chart on a real API server: every manifest is accepted, and installing, upgrading and uninstalling keep promises.

Nothing runs pods here; what they do on a node belongs to the end-to-end tests.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from e2e.cluster.contract import Cluster
from tests.chart.helm import CHART, CI, TRIAL, Helm, HelmError, Object, pod_specs

RELEASE_BYTES = 1024 * 1024
"""What a Secret may hold, and so a release of Helm."""
FOREIGN = Path(__file__).parent / "monitoring.yaml"


@pytest.fixture(scope="module")
def ready(cluster: Cluster) -> Cluster:
    """The cluster with the kinds of the Prometheus operator."""
    cluster.apply(FOREIGN)
    cluster.run_kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(FOREIGN))
    return cluster


@pytest.fixture
def live(either_helm: Helm, ready: Cluster, namespace: str) -> Iterator[Helm]:
    """Helm on the cluster; what it installed in the test's namespace is uninstalled, CRDs included."""
    helm = replace(either_helm, environment=ready.environment())
    yield helm
    helm("uninstall", "partita", "--namespace", namespace, "--no-hooks", "--ignore-not-found")
    for kind in ("definitions", "runs", "engines"):
        ready.run_kubectl("delete", "crd", f"workflow{kind}.partita.dev", "--ignore-not-found")


def _restricted(cluster: Cluster, namespace: str) -> None:
    labels = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn")]
    cluster.run_kubectl("label", "namespace", namespace, *labels)


def _pods(rendered: list[Object]) -> list[Object]:
    """Every pod of the manifests, by itself, since only pods are refused by the standard."""
    made = []
    for number, (where, spec) in enumerate(pod_specs(rendered)):
        changed = {key: value for key, value in spec.items() if key not in ("serviceAccountName", "priorityClassName")}
        named = {volume["name"] for volume in spec["volumes"]}
        if where.startswith("StatefulSet") and "data" not in named:  # its claim is the controller's to fill in
            changed["volumes"] = [*spec["volumes"], {"name": "data", "emptyDir": {}}]
        metadata = {"name": f"pod-{number}", "annotations": {"from": where}}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": changed})
    return made


@pytest.mark.parametrize("file", CI, ids=lambda path: path.stem)
def test_the_api_server_accepts_every_manifest(helm: Helm, ready: Cluster, namespace: str, file: Path) -> None:
    _restricted(ready, namespace)
    rendered = [
        each
        for each in helm.template("-f", str(file), namespace=namespace)
        if each["kind"] != "Pod" and each["metadata"].get("namespace", namespace) == namespace
    ]
    for objects in (rendered, _pods(rendered)):
        text = yaml.safe_dump_all(objects)
        ready.run_kubectl(
            "create", "--dry-run=server", "--validate=strict", "--namespace", namespace, "-f", "-", stdin=text
        )


def _password(cluster: Cluster, namespace: str) -> bytes:
    secret = cluster.kubectl_json("--namespace", namespace, "get", "secret", "partita-postgresql")
    return base64.b64decode(secret["data"]["password"])


def test_install_upgrade_uninstall_and_reinstall(live: Helm, ready: Cluster, namespace: str) -> None:
    here = ("--namespace", namespace)
    live("install", "partita", str(CHART), *here, *TRIAL)
    password = _password(ready, namespace)
    live("upgrade", "partita", str(CHART), *here, *TRIAL, "--no-hooks", "--set", "operator.replicas=3")
    assert _password(ready, namespace) == password
    deployment = ready.kubectl_json(*here, "get", "deployment", "partita-operator")
    assert deployment["spec"]["replicas"] == 3
    secrets = ready.kubectl_json(*here, "get", "secret", "-l", "owner=helm")["items"]
    assert secrets
    assert max(len(base64.b64decode(each["data"]["release"])) for each in secrets) < RELEASE_BYTES / 2
    live("rollback", "partita", "1", *here, "--no-hooks")
    live("uninstall", "partita", *here, "--no-hooks")
    left = ready.run_kubectl("get", "crd", "-o", "name")
    assert left.count(".partita.dev") == 3
    assert ready.run_kubectl(*here, "get", "deployments,cronjobs,roles,poddisruptionbudgets", "-o", "name") == ""
    live("install", "partita", str(CHART), *here, *TRIAL)
    assert _password(ready, namespace) == password, "the volume that was kept has the old one"


def test_a_hook_migrates_before_an_upgrade_and_not_before_an_installation(
    live: Helm, ready: Cluster, namespace: str
) -> None:
    here = ("--namespace", namespace)
    values = ("--set", "database.url=postgresql://a@b/c")
    live("install", "partita", str(CHART), *here, *values)
    assert ready.run_kubectl(*here, "get", "jobs", "-o", "name") == ""
    with pytest.raises(HelmError, match=r"(?i)pre-upgrade"):
        live("upgrade", "partita", str(CHART), *here, *values, "--timeout", "3s", "--set", "operator.replicas=5")
    job = ready.kubectl_json(*here, "get", "job", "partita-migrate")
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][0] == "migrate"
    assert ready.kubectl_json(*here, "get", "deployment", "partita-operator")["spec"]["replicas"] == 2


def test_a_password_that_was_made_up_elsewhere_is_refused(live: Helm, ready: Cluster, namespace: str) -> None:
    live("install", "partita", str(CHART), "--namespace", namespace, *TRIAL)
    before = _password(ready, namespace)
    elsewhere = yaml.safe_dump_all(
        [each for each in live.template(*TRIAL, namespace=namespace) if each["kind"] == "Secret"]
    )
    with pytest.raises(Exception, match="immutable"):
        ready.run_kubectl(
            "--namespace", namespace, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=elsewhere
        )
    assert _password(ready, namespace) == before
