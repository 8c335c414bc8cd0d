"""Layers: a folder as a tar whose bytes depend on its contents alone.

Invariant: names in order, one fixed time, numeric owners without names, no extended attributes.
"""

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.images.cache import Cache
from e2e.images.errors import ImageError

TIME = 315532800
"""1980-01-01, the earliest that every archive format can hold, in seconds since 1970."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Layer:
    """A tar in the cache, its digest (`sha256:…`) and its size in bytes."""

    path: Path
    digest: str
    size: int


def layer(folder: Path, cache: Cache) -> Layer:
    """Return the layer of a step's folder, packed once."""
    made = cache.ensure("layers", folder.name, lambda scratch: _make(folder, scratch))
    path = made / "layer.tar"
    return Layer(path, (made / "digest").read_text("utf-8"), path.stat().st_size)


def _make(folder: Path, scratch: Path) -> None:
    path = scratch / "layer.tar"
    pack(folder, path)
    (scratch / "digest").write_text(f"sha256:{file_digest(path)}", "utf-8")


def pack(folder: Path, archive: Path) -> None:
    """Write the contents of `folder` as a tar."""
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in _entries(folder):
            entry = _entry(tar, path, str(path.relative_to(folder)))
            if entry.isreg():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entries(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _entries(path)


def _entry(tar: tarfile.TarFile, path: Path, name: str) -> tarfile.TarInfo:
    tar.inodes = {}  # type: ignore[attr-defined]  # files with several names are written whole, whatever order made them
    entry = tar.gettarinfo(path, name)
    if entry is None or entry.ischr():
        raise ImageError(f"{name}: a layer of the last stage holds files, folders and links only")
    entry.mtime, entry.uname, entry.gname = TIME, "", ""
    return entry
