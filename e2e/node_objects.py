"""Small objects for the tests of a node: pods of the shell image, which every node has."""

from __future__ import annotations

import json
from typing import Any

from e2e.cluster import ClusterError, PodCluster

SHELL_IMAGE = "partita.local/pause:1"
WAIT_SECONDS = 90

Object = dict[str, Any]


def container(script: str, **more: Any) -> Object:
    """Return a container that runs a shell script."""
    return {
        "name": "main",
        "image": SHELL_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-ec", script],
        **more,
    }


def pod_spec(script: str, *, pod: Object | None = None, **more: Any) -> Object:
    """Return a pod's spec with one such container; `pod` adds fields to the spec, the rest to the container."""
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container(script, **more)]}
    return spec | (pod or {})


def pod(name: str, script: str, *, labels: Object | None = None, **more: Any) -> Object:
    """Return a pod that runs a shell script."""
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(script, **more)}


def job(name: str, script: str, **more: Any) -> Object:
    """Return a Job of one pod that is not tried again."""
    spec = {"backoffLimit": 0, "template": {"spec": pod_spec(script, **more)}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def apply(node: PodCluster, namespace: str, *objects: Object) -> None:
    """Apply objects in a namespace."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    node.run_kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(listed))


def wait_for(node: PodCluster, namespace: str, what: str, condition: str) -> None:
    """Wait until an object has a condition, in the words of `kubectl wait --for`."""
    arguments = ("wait", "-n", namespace, f"--for={condition}", what, f"--timeout={WAIT_SECONDS}s")
    node.run_kubectl(*arguments, seconds=WAIT_SECONDS + 10)


def run_to_end(node: PodCluster, namespace: str, made: Object) -> str:
    """Create a pod, wait until it has succeeded, and return its log."""
    name = made["metadata"]["name"]
    apply(node, namespace, made)
    try:
        wait_for(node, namespace, f"pod/{name}", "jsonpath={.status.phase}=Succeeded")
    except ClusterError as error:
        raise ClusterError(f"{error}; its state and log:\n{explain(node, namespace, name)}") from error
    return node.run_kubectl("logs", "-n", namespace, name)


def explain(node: PodCluster, namespace: str, name: str) -> str:
    """Return what Kubernetes tells about a pod, and what the pod wrote as far as it came."""
    told = node.run_kubectl("describe", "pod", "-n", namespace, name)
    try:
        return told + node.run_kubectl("logs", "-n", namespace, name)
    except ClusterError as error:
        return f"{told}{error}"
