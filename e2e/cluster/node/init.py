"""Process 1 of a node: sets up the mounts and the network that are its own, then reaps whatever ends.

Run by path with an isolated interpreter (`python -I init.py HOME READY`), hence it imports nothing of the project.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

FOLDERS = {
    "kubelet": "/var/lib/kubelet",
    "cni": "/var/lib/cni",
    "containerd": "/var/lib/containerd",
    "run": "/run/containerd",
    "log/pods": "/var/log/pods",
    "log/containers": "/var/log/containers",
}
"""Folder in the node's home → the path, fixed in some program, at which only the node sees it."""

SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet wants of the kernel. It gets files with these values instead: the machine is not the node's."""

NETWORK = (
    "ip link set lo up",
    "ip link add node0 type bridge",
    "ip addr add 10.99.0.1/24 dev node0",
    "ip link set node0 up",
    "ip route add default via 10.99.0.254 dev node0",
)


def main(home: Path, ready: Path) -> None:
    """Set up, say so by the file `ready`, and stay."""
    for name, path in FOLDERS.items():
        (home / name).mkdir(parents=True, exist_ok=True)
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - the same call for both would hide which may be there
        _run("mount", "--bind", str(home / name), path)
    for name, value in SETTINGS.items():
        substitute = home / "settings" / name.replace("/", ".")
        substitute.parent.mkdir(exist_ok=True)
        substitute.write_text(f"{value}\n", encoding="ascii")
        _run("mount", "--bind", str(substitute), f"/proc/sys/{name}")
    for command in NETWORK:
        _run(*command.split())
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps every orphan that comes to process 1
    ready.touch()
    while True:
        signal.pause()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=20, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
    main(Path(sys.argv[1]), Path(sys.argv[2]))
