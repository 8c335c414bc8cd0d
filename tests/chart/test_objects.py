"""Promises that every rendered object keeps, whatever the values."""

from __future__ import annotations

import re
from typing import Any

from tests.chart.helm import Helm, Object, containers, of_kind, one, pod_specs

CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
LONG_LIVED = ("Deployment", "StatefulSet")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
Everything = dict[str, list[Object]]


def test_every_pod_is_restricted_and_says_what_it_needs(rendered: Everything) -> None:
    for file, objects in rendered.items():
        for where, pod in pod_specs(objects):
            assert pod["securityContext"]["runAsNonRoot"] is True, (file, where)
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, (file, where)
            assert pod["enableServiceLinks"] is False, (file, where)
            for container in containers(pod):
                assert container["securityContext"] == RESTRICTED, (file, where)
                assert container["resources"]["requests"]["cpu"], (file, where)
                assert container["resources"]["limits"]["memory"], (file, where)
                assert not container["image"].endswith(":latest"), (file, where)
                assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"], (file, where)  # noqa: S108 - in a pod


def test_whatever_serves_is_probed(rendered: Everything) -> None:
    for file, objects in rendered.items():
        for where, pod in pod_specs(objects):
            if where.startswith(LONG_LIVED):
                (container,) = pod["containers"]
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    assert container[probe], (file, where, probe)


def test_only_who_calls_the_api_has_a_token(rendered: Everything) -> None:
    for file, objects in rendered.items():
        for where, pod in pod_specs(objects):
            may = where.endswith(("-operator", "-test")) or where == "Deployment/partita-worker-shop"
            assert pod["automountServiceAccountToken"] is may, (file, where)


def test_no_right_is_a_wildcard(rendered: Everything) -> None:
    for file, objects in rendered.items():
        for role in (*of_kind(objects, "Role"), *of_kind(objects, "ClusterRole")):
            for rule in role["rules"]:
                words = [word for part in rule.values() for word in part]
                assert "*" not in "".join(words), (file, role["metadata"]["name"])
                assert not {"secrets", "escalate", "bind", "impersonate"} & set(words), (file, role["metadata"]["name"])


def test_names_and_labels(rendered: Everything) -> None:
    for file, objects in rendered.items():
        for each in objects:
            metadata = each["metadata"]
            where = (file, each["kind"], metadata["name"])
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", metadata["name"]), where
            assert ("namespace" in metadata) is (each["kind"] not in CLUSTER_SCOPED), where
            labels: dict[str, Any] = metadata["labels"]
            assert {"app.kubernetes.io/name", "app.kubernetes.io/instance"} <= labels.keys(), where
            assert all(isinstance(value, str) and len(value) <= 63 for value in labels.values()), where


def test_no_object_occurs_twice(rendered: Everything) -> None:
    for file, objects in rendered.items():
        keys = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects]
        assert len(keys) == len(set(keys)), file


def test_selectors_fit_their_pods_and_stay_as_they_are(rendered: Everything, helm: Helm) -> None:
    for objects in rendered.values():
        for each in (*of_kind(objects, "Deployment"), *of_kind(objects, "StatefulSet")):
            selector = each["spec"]["selector"]["matchLabels"]
            assert selector.items() <= each["spec"]["template"]["metadata"]["labels"].items()
    first, later = (
        one(helm.trial(*arguments), "Deployment", "partita-operator")
        for arguments in ((), ("--set", "commonLabels.a=b", "--set", "image.tag=later"))
    )
    assert first["spec"]["selector"] == later["spec"]["selector"]


def test_in_namespaced_mode_nothing_belongs_to_the_cluster(rendered: Everything) -> None:
    objects = rendered["namespaced-values.yaml"]
    assert [each for each in objects if each["kind"] in CLUSTER_SCOPED] == []
    bound = {each["metadata"]["namespace"] for each in of_kind(objects, "RoleBinding", "partita-operator-objects")}
    assert bound == {"team-a", "team-b", "partita-system"}


def test_in_cluster_mode_the_operator_has_one_cluster_role(helm: Helm) -> None:
    objects = helm.trial()
    assert [each["metadata"]["name"] for each in of_kind(objects, "ClusterRoleBinding")] == [
        "partita-system-partita-operator"
    ]
    (role,) = of_kind(objects, "ClusterRole", "partita-system-partita-operator")
    assert {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]} in role[
        "rules"
    ]
    (known,) = of_kind(helm.trial("--set", "clusterUid=a"), "ClusterRole", "partita-system-partita-operator")
    assert all("namespaces" not in rule["resources"] for rule in known["rules"])


def test_there_is_no_object_of_our_kinds(rendered: Everything) -> None:
    for objects in rendered.values():
        assert [each for each in objects if each["apiVersion"].startswith("partita.dev/")] == []


def test_long_names_stay_within_bounds(helm: Helm) -> None:
    worker = "a" * 23
    objects = helm.template(
        "--set", "postgresql.embedded.enabled=true", "--set", f"workers.{worker}.app=t", release="r" * 53
    )
    for each in objects:
        limit = 52 if each["kind"] == "CronJob" else 63
        if each["kind"] not in CLUSTER_SCOPED:
            assert len(each["metadata"]["name"]) <= limit, each["metadata"]["name"]
