"""A Kubernetes node that runs pods, on a Linux machine without Docker.

    with running(Node(tmp_path, "mine")) as node:
        node.load_image(Path("image.tar"))
        node.run_kubectl("get", "pods", "-A")
        node.run_helm("install", "mine", "charts/partita")

Everything of a node lives in namespaces of its own (processes, mounts, network), whose first process is the node's
holder: when the holder ends, the kernel ends all others, containers included, and mounts and interfaces go with them.
Only the API server, and what `forward` names, is reachable from outside, on loopback. Pods resolve service names and
reach services; they reach nothing beyond the node. NetworkPolicy objects are accepted and not enforced.
"""

from e2e.cluster.node.node import Node

__all__ = ["Node"]
