"""The archive of an image, as `docker save` writes it: a manifest, a configuration and the layers.

Invariant: the same layers and the same configuration give the same bytes. `ctr images import` and `docker load` read
it.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from e2e.images.layers import TIME, Layer
from e2e.images.state import State

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST = "manifest.json"


def configuration(state: State, layers: Sequence[Layer]) -> bytes:
    """Return the image's configuration in the format that the OCI describes."""
    inside: dict[str, Any] = {
        "User": state.user,
        "Env": [f"{name}={value}" for name, value in state.environment.items()],
        "Entrypoint": list(state.entrypoint) or None,
        "Cmd": list(state.command) or None,
        "WorkingDir": state.folder,
        "Labels": dict(sorted(state.labels.items())) or None,
        "StopSignal": state.stop_signal or None,
        "Volumes": {name: {} for name in state.volumes} or None,
        "ExposedPorts": {f"{port}/tcp": {} for port in state.ports} or None,
    }
    found = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": state.labels.get("org.opencontainers.image.created", "1980-01-01T00:00:00Z"),
        "config": {name: value for name, value in inside.items() if value is not None},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [{"created_by": f"layer {number}"} for number in range(len(layers))],
    }
    return json.dumps(found, sort_keys=True).encode()


def write(path: Path, tag: str, config: bytes, layers: Sequence[Layer]) -> str:
    """Write the archive unless it is there already; returns the image's id (`sha256:…`)."""
    identity = hashlib.sha256(config).hexdigest()
    names = [f"{layer.digest.removeprefix('sha256:')}/layer.tar" for layer in layers]
    manifest = json.dumps([{"Config": f"{identity}.json", "RepoTags": [tag], "Layers": names}]).encode()
    if _manifest(path) != manifest:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.making")
        with tarfile.open(scratch, "w", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, MANIFEST, manifest)
            _add(tar, f"{identity}.json", config)
            for name, layer in dict(zip(names, layers, strict=True)).items():
                entry = _plain(name, layer.size)
                with layer.path.open("rb") as file:
                    tar.addfile(entry, file)
        scratch.rename(path)
    return f"sha256:{identity}"


def _manifest(path: Path) -> bytes | None:
    """Return the manifest of an archive that is there, whole as it was renamed."""
    if not path.is_file():
        return None
    with tarfile.open(path) as tar:
        first = tar.next()
        file = tar.extractfile(first) if first is not None and first.name == MANIFEST else None
        return file.read() if file is not None else None


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_plain(name, len(content)), io.BytesIO(content))


def _plain(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, TIME, 0o644
    return entry
