"""The node's network, seen by programs of this machine that are no pods.

Invariant: a program here runs under PostgreSQL's account, and is killed with the thread that started it, so that
nothing outlives the tests. Trade-off: only the node that is built here has such a network; kind's belongs to Docker.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import ClusterError, PodCluster
from e2e.cluster.node import Node
from e2e.cluster.node.addresses import DNS_DOMAIN, NODE_IP
from e2e.cluster.pki import Authority
from e2e.cluster.processes import Running, start_command
from partita.store.programs import account

ADDRESS = NODE_IP
CERTIFICATE = "server"


@dataclass(frozen=True, slots=True)
class Network:
    """A node, and a folder of this machine that PostgreSQL's account can enter."""

    node: Node
    folder: Path

    @classmethod
    def of(cls, cluster: PodCluster, folder: Path) -> Network:
        """Take the network of a node; raises ClusterError where programs of this machine are not in it."""
        if not isinstance(cluster, Node):
            raise ClusterError("the network of a Docker engine's kind: programs of this machine are not in it")
        folder.chmod(0o755)
        return cls(cluster, folder)

    def start(self, name: str, *command: str) -> Running:
        """Start a program whose arguments name `folder`, under PostgreSQL's account."""
        owner = account()
        if owner is None:
            raise ClusterError("programs in the node's network are started by root; try: sudo")
        identity = (f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups")
        inside = self.node.command_inside("setpriv", *identity, "--pdeathsig=KILL", "--", *command)
        return start_command(self.folder, name, inside)

    def authority(self, name: str, services: tuple[str, ...] = (), namespace: str = "") -> Authority:
        """Make a CA, and a certificate for this address and for Services by all names they have in a namespace."""
        made = Authority(self.folder / name)
        made.create_ca()
        names = [
            f"{service}{end}"
            for service in services
            for end in ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.{DNS_DOMAIN}")
        ]
        alternatives = ",".join([f"IP:{ADDRESS}", *(f"DNS:{each}" for each in names)])
        made.issue_server(CERTIFICATE, "/CN=outside", alternatives)
        return made

    def give_certificate(self, authority: Authority, folder: Path) -> None:
        """Copy the server's certificate and key to where PostgreSQL's account, and nobody else, reads them."""
        pair = authority.pair(CERTIFICATE)
        for source, name in ((pair.certificate, "server.crt"), (pair.key, "server.key")):
            shutil.copyfile(source, folder / name)
            give(folder / name)

    def expose(self, namespace: str, service: str, port: int) -> None:
        """Let a Service of a namespace lead to a port of this network."""
        ports = [{"name": "postgresql", "port": port, "protocol": "TCP"}]
        listed = {
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                {"apiVersion": "v1", "kind": "Service", "metadata": {"name": service}, "spec": {"ports": ports}},
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
                    "addressType": "IPv4",
                    "endpoints": [{"addresses": [ADDRESS]}],
                    "ports": ports,
                },
            ],
        }
        self.node.run_kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(listed))


def give(path: Path) -> None:
    """Make a file or folder readable by PostgreSQL's account alone."""
    owner = account()
    path.chmod(0o700 if path.is_dir() else 0o600)
    if owner is not None:
        os.chown(path, owner.pw_uid, owner.pw_gid)
