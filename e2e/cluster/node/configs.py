"""The configuration files of a node's programs. Paths below /var/lib and /run are those that only the node sees."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster.node.addresses import DNS_DOMAIN, NODE_IP, POD_RANGE
from e2e.cluster.node.requirements import CNI_FOLDER
from e2e.cluster.pki import Authority

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "partita.local/pause:1"

CONTAINERD = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]

[grpc]
  address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
  # Without CAP_SYS_RESOURCE, as in most sandboxes, runc could not lower the score and would give up.
  restrict_oom_score_adj = true
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_programs}"
    conf_dir = "{cni_conf}"
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""

COREFILE = """\
.:53 {{
    bind {address}
    errors
    ready {address}:8181
    cache 5
    kubernetes {domain} in-addr.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 5
    }}
}}
"""

NETWORK: dict[str, Any] = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "hairpinMode": True,
            "ipMasq": False,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_RANGE}]], "routes": [{"dst": "0.0.0.0/0"}]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


@dataclass(frozen=True, slots=True)
class Configs:
    """The configuration files in a node's home."""

    folder: Path

    @property
    def containerd(self) -> Path:
        return self.folder / "containerd.toml"

    @property
    def kubelet(self) -> Path:
        return self.folder / "kubelet.json"

    @property
    def names(self) -> Path:
        return self.folder / "Corefile"

    def write(self, authority: Authority, *, cgroup: str, names_kubeconfig: Path) -> None:
        """Write all of them; `cgroup` is the one below which the node's pods get theirs."""
        network = self.folder / "cni"
        network.mkdir(parents=True, exist_ok=True)
        (network / "pods.conflist").write_text(json.dumps(NETWORK, indent=2), encoding="utf-8")
        text = CONTAINERD.format(
            socket=CONTAINERD_SOCKET,
            pause=PAUSE_IMAGE,
            cni_programs=CNI_FOLDER,
            cni_conf=network,
            snapshotter=snapshotter(self.folder),
        )
        self.containerd.write_text(text, encoding="utf-8")
        self.kubelet.write_text(json.dumps(_kubelet(authority, cgroup), indent=2), encoding="utf-8")
        corefile = COREFILE.format(address=NODE_IP, domain=DNS_DOMAIN, kubeconfig=names_kubeconfig)
        self.names.write_text(corefile, encoding="utf-8")


def snapshotter(folder: Path) -> str:
    """Return containerd's `overlayfs`, or `native`, which copies, where the folder itself lies on an overlay."""
    best = ("", "")
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, mountpoint, kind, *_ = line.split(" ")
        if folder.resolve().is_relative_to(mountpoint) and len(mountpoint) >= len(best[0]):
            best = (mountpoint, kind)
    return "native" if best[1] == "overlay" else "overlayfs"


def _kubelet(authority: Authority, cgroup: str) -> Mapping[str, Any]:
    serving = authority.pair("kubelet-serving")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_IP,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.ca.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "clusterDNS": [NODE_IP],
        "clusterDomain": DNS_DOMAIN,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "nodeStatusUpdateFrequency": "10s",
        "syncFrequency": "10s",
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
    }
