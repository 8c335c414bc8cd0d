"""A kubeconfig file of the cluster's own: the person's is neither read nor written."""

import base64
import json
from pathlib import Path

from e2e.cluster.pki import Pair


def write(path: Path, *, server: str, ca: Path, client: Pair, context: str) -> None:
    """Write a self-contained kubeconfig with one context; readable by its owner alone.

    JSON, which is YAML too and needs no library.
    """
    cluster = {"server": server, "certificate-authority-data": _data(ca)}
    user = {"client-certificate-data": _data(client.certificate), "client-key-data": _data(client.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": context, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context, "namespace": "default"}}],
        "current-context": context,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
