"""The files that a build may read: a folder seen through its .dockerignore.

Invariant: the digest and the copies depend on names, contents and the executable bit alone, not on times, owners or the
umask of a checkout.
"""

import fnmatch
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from e2e.images.errors import ImageError


@dataclass(frozen=True, slots=True)
class Context:
    """A folder, and the patterns of what stays outside; a later pattern wins, `!` takes back."""

    folder: Path
    patterns: tuple[str, ...] = ()

    def files(self, name: str) -> dict[str, Path]:
        """Return the files below a name by path relative to it ("" for a file itself); ImageError without any."""
        start = self.folder / name.rstrip("/")
        if start.is_file():
            found = {"": start} if self._inside(start) else {}
        else:
            found = {str(path.relative_to(start)): path for path in sorted(start.rglob("*")) if self._wanted(path)}
        if not found:
            raise ImageError(f"COPY {name}: nothing of this name in the context {self.folder.name}")
        return found

    def digest(self, name: str) -> str:
        """Return the digest of what `files` returns."""
        hashed = hashlib.sha256()
        for relative, path in self.files(name).items():
            content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            hashed.update(f"{relative}\0{mode(path):o}\0{len(content)}\0".encode() + content)
        return hashed.hexdigest()

    def _wanted(self, path: Path) -> bool:
        return (path.is_symlink() or path.is_file()) and self._inside(path)

    def _inside(self, path: Path) -> bool:
        parts = path.relative_to(self.folder).parts
        names = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        inside = True
        for pattern in self.patterns:
            if any(_matches(name, pattern.removeprefix("!")) for name in names):
                inside = pattern.startswith("!")
        return inside


def checkout(folder: Path) -> Context:
    """Return the context of a folder with its .dockerignore."""
    ignored = folder / ".dockerignore"
    lines = ignored.read_text("utf-8").splitlines() if ignored.is_file() else []
    return Context(
        folder, tuple(line.strip().rstrip("/") for line in lines if line.strip() and not line.startswith("#"))
    )


def copy(files: dict[str, Path], target: Path) -> None:
    """Copy files below `target` with plain modes."""
    for relative, source in files.items():
        place = target / relative if relative else target
        make_folders(place.parent)
        if source.is_symlink():
            place.symlink_to(source.readlink())
        else:
            shutil.copyfile(source, place)
            place.chmod(mode(source))


def make_folders(folder: Path) -> None:
    """Make a folder and its parents with the mode 0755, whatever the umask."""
    if not folder.is_dir():
        make_folders(folder.parent)
        folder.mkdir()
        folder.chmod(0o755)


def mode(path: Path) -> int:
    """Return the mode that a file has in an image."""
    return 0o755 if path.stat(follow_symlinks=False).st_mode & 0o100 else 0o644


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(name.rsplit("/", 1)[-1], pattern.removeprefix("**/"))
    return name.count("/") == pattern.count("/") and fnmatch.fnmatchcase(name, pattern)
