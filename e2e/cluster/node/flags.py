"""The options of a node's programs, and of its control plane where they differ from one on loopback."""

from pathlib import Path

from e2e.cluster import flags
from e2e.cluster.flags import Options
from e2e.cluster.node.addresses import NODE_IP, NODE_NAME, POD_RANGE, PORTS
from e2e.cluster.pki import Authority


def etcd(home: Path) -> Options:
    """Return etcd's options."""
    return flags.etcd(home, PORTS)


def apiserver(authority: Authority) -> Options:
    """Return the API server's options: pods reach it by its Service, and it reaches the kubelet."""
    client = authority.pair("kubelet-client")
    options = flags.apiserver(authority, PORTS) | {
        "bind-address": "0.0.0.0",  # noqa: S104 - all interfaces of a network namespace that nobody else is in
        "advertise-address": NODE_IP,
        "allow-privileged": "true",
        "kubelet-certificate-authority": str(authority.ca.certificate),
        "kubelet-client-certificate": str(client.certificate),
        "kubelet-client-key": str(client.key),
    }
    del options["endpoint-reconciler-type"]
    return options


def controller_manager(authority: Authority, kubeconfig: Path) -> Options:
    """Return the controller manager's options."""
    return flags.controller_manager(authority, kubeconfig)


def scheduler(kubeconfig: Path) -> Options:
    """Return the scheduler's options: it is alone, hence no election."""
    return {
        "kubeconfig": str(kubeconfig),
        "authentication-kubeconfig": str(kubeconfig),
        "authorization-kubeconfig": str(kubeconfig),
        "leader-elect": "false",
        "secure-port": "0",
        "profiling": "false",
    }


def kubelet(config: Path, kubeconfig: Path) -> Options:
    """Return the kubelet's options; what can stand in its configuration file stands there."""
    return {
        "config": str(config),
        "kubeconfig": str(kubeconfig),
        "hostname-override": NODE_NAME,
        "node-ip": NODE_IP,
    }


def proxy(kubeconfig: Path) -> Options:
    """Return kube-proxy's options: it leaves the connection tracking of the machine as it is."""
    return {
        "kubeconfig": str(kubeconfig),
        "hostname-override": NODE_NAME,
        "proxy-mode": "iptables",
        "cluster-cidr": POD_RANGE,
        "conntrack-max-per-core": "0",
        "conntrack-tcp-timeout-established": "0",
        "conntrack-tcp-timeout-close-wait": "0",
        "metrics-bind-address": f"{NODE_IP}:10249",
        "healthz-bind-address": f"{NODE_IP}:10256",
    }
