"""Who is who in a node: the certificates of its programs, each with the rights that Kubernetes means it to have."""

from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import kubeconfig
from e2e.cluster.node.addresses import API_SERVER, NODE_IP, NODE_NAME, SERVICE_IP
from e2e.cluster.pki import Authority

NODE_SUBJECT = f"/O=system:nodes/CN=system:node:{NODE_NAME}"
CLIENTS = {
    "scheduler": "/CN=system:kube-scheduler",
    "kubelet": NODE_SUBJECT,
    "proxy": "/CN=system:kube-proxy",
    "names": "/CN=system:coredns",
}
"""Client → the subject of its certificate, which Kubernetes's own roles (and, for names, ours) give rights to."""


@dataclass(frozen=True, slots=True)
class Identities:
    """The certificates and kubeconfigs below a node's home."""

    home: Path
    authority: Authority

    def create(self, context: str) -> None:
        """Issue all certificates and write the kubeconfigs of those who connect inside the node."""
        self.authority.create(service_ip=SERVICE_IP, address=NODE_IP)
        self.authority.issue_client("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
        self.authority.issue_server("kubelet-serving", NODE_SUBJECT, f"IP:{NODE_IP}")
        for client, subject in CLIENTS.items():
            self.authority.issue_client(client, subject)
        for client in (*CLIENTS, "controller-manager"):
            ca, pair = self.authority.ca.certificate, self.authority.pair(client)
            kubeconfig.write(self.kubeconfig(client), server=API_SERVER, ca=ca, client=pair, context=context)

    def kubeconfig(self, client: str) -> Path:
        """Name a client's kubeconfig."""
        return self.home / f"{client}.kubeconfig"

    def remove(self) -> None:
        """Remove the kubeconfigs; the certificates go with their folder."""
        for client in (*CLIENTS, "controller-manager"):
            self.kubeconfig(client).unlink(missing_ok=True)
