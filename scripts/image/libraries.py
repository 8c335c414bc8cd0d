"""The shared libraries that a set of files needs, wherever the system keeps them.

Invariant: every library lands in the multiarch folder, which the loader searches by itself, so that the image needs no
loader cache and none of the system's other folders.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .elf import Elf, read


class LibraryMissingError(Exception):
    """A file needs a library that is nowhere."""


@dataclass(slots=True)
class Libraries:
    """Collects libraries from the system `root` into `target`."""

    root: Path
    target: Path
    taken: dict[str, Path] = field(default_factory=dict)
    """Name that programs ask for → the file it was taken from."""

    @property
    def folder(self) -> Path:
        """Multiarch folder relative to a root, such as usr/lib/x86_64-linux-gnu."""
        return next(iter(sorted((self.root / "usr/lib").glob("*-linux-gnu")))).relative_to(self.root)

    def add_needed_by(self, files: Iterable[Path]) -> None:
        """Take what the files need, and what that needs in turn."""
        for path in files:
            elf = read(path)
            if elf is not None:
                self._add_loader(elf)
                self._add_all(path, elf)

    def _add_all(self, path: Path, elf: Elf) -> None:
        for name in elf.needed:
            if name in self.taken or _bundled(path, elf, name):
                continue
            source = self._find(name)
            if source is None:
                folders = ", ".join(map(str, self._folders()))
                raise LibraryMissingError(f"{path}: needs {name}, which is nowhere; expected it in {folders}")
            self._take(name, source)

    def _take(self, name: str, source: Path) -> None:
        if name in self.taken:
            return
        self.taken[name] = source
        _copy(source, self.target / self.folder / name)
        self.add_needed_by([source])

    def _add_loader(self, elf: Elf) -> None:
        """Put the loader where programs name it."""
        if elf.interpreter is None:
            return
        source = (self.root / elf.interpreter.lstrip("/")).resolve()
        place = self.target / elf.interpreter.lstrip("/")
        if not place.exists():
            _copy(source, place)
        self.taken.setdefault(place.name, source)

    def _find(self, name: str) -> Path | None:
        return next(((folder / name).resolve() for folder in self._folders() if (folder / name).exists()), None)

    def _folders(self) -> Iterator[Path]:
        for folder in (self.folder, Path("usr/local/lib"), Path("usr/lib"), Path("usr/lib64")):
            yield self.root / folder


def _bundled(path: Path, elf: Elf, name: str) -> bool:
    """Whether a library comes with the file that needs it."""
    folders = (
        folder.replace("$ORIGIN", str(path.parent)).replace("${ORIGIN}", str(path.parent)) for folder in elf.search
    )
    return any((Path(folder) / name).exists() for folder in folders)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
