"""The addresses inside a node's own network namespace; every node has the same, since none sees another's."""

from e2e.cluster.flags import SERVICE_IP

NODE_NAME = "node"
NODE_IP = "10.99.0.1"
NODE_PREFIX = 24
POD_RANGE = "10.244.0.0/24"
DNS_DOMAIN = "cluster.local"
PORTS = {"etcd": 2379, "etcd-peer": 2380, "kube-apiserver": 6443}
API_SERVER = f"https://{NODE_IP}:{PORTS['kube-apiserver']}"

__all__ = ["API_SERVER", "DNS_DOMAIN", "NODE_IP", "NODE_NAME", "NODE_PREFIX", "POD_RANGE", "PORTS", "SERVICE_IP"]
