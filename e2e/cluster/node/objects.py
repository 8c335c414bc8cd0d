"""What a fresh node's cluster holds beyond what Kubernetes makes: storage to claim, and the name server's rights."""

import json
from pathlib import Path
from typing import Any

from e2e.cluster.node.addresses import NODE_NAME

STORAGE_CLASS = "standard"
VOLUMES = 12
VOLUME_SIZE = "100Gi"

Object = dict[str, Any]


def write(path: Path, volumes: Path) -> None:
    """Write the objects as one list; makes the folders of the volumes below `volumes`."""
    items = [_storage_class(), *_names_rights(), *(_volume(volumes / str(number)) for number in range(VOLUMES))]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")


def _storage_class() -> Object:
    """Return the default class: volumes made beforehand, each used once, none provided on demand."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(folder: Path) -> Object:
    """Return a volume of kind `local`, to whose files the kubelet gives a pod's fsGroup."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"local-{folder.name}"},
        "spec": {
            "capacity": {"storage": VOLUME_SIZE},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def _names_rights() -> list[Object]:
    core = {"apiGroups": [""], "resources": ["endpoints", "namespaces", "pods", "services"]}
    slices = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"]}
    verbs = {"verbs": ["get", "list", "watch"]}
    group = "rbac.authorization.k8s.io"
    name = {"name": "system:coredns"}
    return [
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": name, "rules": [core | verbs, slices | verbs]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", **name},
            "subjects": [{"apiGroup": group, "kind": "User", **name}],
        },
    ]
