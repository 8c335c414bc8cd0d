"""Images without a registry and without Docker: a tar of one layer, a config and a manifest."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster.node.configs import PAUSE_IMAGE
from e2e.cluster.node.requirements import BUSYBOX

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
APPLETS = (
    *("base64", "cat", "cut", "date", "echo", "env", "false", "grep", "head", "httpd", "id", "kill", "ls", "mkdir"),
    *("nc", "nslookup", "ps", "rm", "sh", "sleep", "stat", "tail", "touch", "tr", "true", "wc", "wget"),
)
"""What tests use of BusyBox; each is a link in /bin."""


def write_pause(path: Path) -> None:
    """Write the image that keeps a pod's namespaces open, which is also a small shell for tests: static BusyBox."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        _add(tar, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for folder, mode in (("tmp", 0o1777), ("etc", 0o755)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nnonroot:x:65532:65532::/tmp:/bin/sh\n", 0o644)
    write_image(path, PAUSE_IMAGE, layer.getvalue(), ("/bin/sleep", "2147483647"))


def write_image(path: Path, name: str, layer: bytes, entrypoint: Sequence[str]) -> None:
    """Write an image archive with one uncompressed layer, as `ctr images import` and `docker load` read it."""
    machine = platform.machine()
    config = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/bin:/usr/bin:/sbin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as tar:
        _add(tar, "layer.tar", layer, 0o644)
        _add(tar, "config.json", json.dumps(config).encode(), 0o644)
        _add(tar, "manifest.json", json.dumps(manifest).encode(), 0o644)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
