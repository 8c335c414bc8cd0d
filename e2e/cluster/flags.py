"""The options of the control plane's programs."""

from collections.abc import Mapping
from pathlib import Path

from e2e.cluster.pki import Authority
from e2e.cluster.ports import LOOPBACK

SERVICE_RANGE = "10.96.0.0/16"
SERVICE_IP = "10.96.0.1"
ISSUER = "https://kubernetes.default.svc.cluster.local"

Options = dict[str, str]


def etcd(home: Path, ports: Mapping[str, int]) -> Options:
    """Return etcd's options: one member on loopback that does not wait for the disk."""
    client, peer = (f"http://{LOOPBACK}:{ports[name]}" for name in ("etcd", "etcd-peer"))
    return {
        "data-dir": str(home / "etcd"),
        "name": "default",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def apiserver(authority: Authority, ports: Mapping[str, int]) -> Options:
    """Return the API server's options: RBAC, certificates of `authority`, admission as Kubernetes has it by default.

    Nothing in the cluster connects to the API through its Service, whose address would have to be one that is not
    loopback: no endpoints are kept for it.
    """
    serving, token_key = authority.pair("apiserver"), str(authority.token_key)
    return {
        "etcd-servers": f"http://{LOOPBACK}:{ports['etcd']}",
        "bind-address": LOOPBACK,
        "advertise-address": LOOPBACK,
        "endpoint-reconciler-type": "none",
        "secure-port": str(ports["kube-apiserver"]),
        "cert-dir": str(authority.folder),
        "tls-cert-file": str(serving.certificate),
        "tls-private-key-file": str(serving.key),
        "client-ca-file": str(authority.ca.certificate),
        "authorization-mode": "Node,RBAC",
        "service-account-issuer": ISSUER,
        "service-account-key-file": token_key,
        "service-account-signing-key-file": token_key,
        "service-cluster-ip-range": SERVICE_RANGE,
        "kubelet-preferred-address-types": "InternalIP",
        "profiling": "false",
    }


def controller_manager(authority: Authority, kubeconfig: Path) -> Options:
    """Return the controller manager's options: every controller, each with an account of its own, no election."""
    return {
        "kubeconfig": str(kubeconfig),
        "use-service-account-credentials": "true",
        "service-account-private-key-file": str(authority.token_key),
        "root-ca-file": str(authority.ca.certificate),
        "cluster-signing-cert-file": str(authority.ca.certificate),
        "cluster-signing-key-file": str(authority.ca.key),
        "leader-elect": "false",
        "secure-port": "0",
        "profiling": "false",
    }
