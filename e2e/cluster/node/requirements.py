"""What a machine needs to run a node, and the words for a person whose machine lacks it."""

import os
import shutil
import sys
from pathlib import Path

CNI_FOLDER = Path("/usr/lib/cni")
BUSYBOX = Path("/bin/busybox")
PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
"""Program → Debian package."""
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"


def problem() -> str | None:
    """Return why no node can run here and what would help, or None when one can."""
    if sys.platform != "linux":
        return "a node runs on Linux only; try: kind with a Docker engine"
    problems: list[str] = []
    if missing := missing_packages():
        problems.append(f"not installed: {', '.join(missing)}; try: apt-get install {' '.join(missing)}")
    if os.geteuid() != 0:
        problems.append("a node must be started by root; try: sudo, or kind with a Docker engine")
    return "; ".join(problems) or None


def missing_packages() -> list[str]:
    """Return the Debian packages that a node needs and this machine lacks."""
    missing = {package for program, package in PROGRAMS.items() if find(program) is None}
    if not (CNI_FOLDER / "bridge").exists():
        missing.add("containernetworking-plugins")
    if not is_static(BUSYBOX):
        missing.add("busybox-static")
    return sorted(missing)


def find(program: str) -> Path | None:
    """Return the path of an installed program, also of one that only root has in its PATH."""
    found = shutil.which(program, path=SEARCH)
    return Path(found) if found else None


def is_static(program: Path) -> bool:
    """Return whether an ELF program needs no loader, so that it runs alone in an image; False when it is not there."""
    try:
        return b"/ld-linux" not in program.read_bytes()[:4096]
    except OSError:
        return False
