"""The cache of bases, steps and layers, a folder of the user's.

Invariant: an entry is whole or not there: it is made beside its place and renamed. Its name is the hash of all that it
was made from, so that it is never stale. Trade-off: what nobody used for two weeks is deleted, other than bases.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

KEEP_SECONDS = 14 * 24 * 3600
SCRATCH = ".making-"


@dataclass(frozen=True, slots=True)
class Cache:
    """Folders of a kind (`bases`, `steps`, `layers`, `wheels`) below `folder`."""

    folder: Path

    def place(self, kind: str, key: str) -> Path:
        """Return where the entry is, or would be."""
        return self.folder / kind / key

    def ensure(self, kind: str, key: str, make: Callable[[Path], None]) -> Path:
        """Return the entry, made by `make` in an empty folder when it is not there."""
        place = self.place(kind, key)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=place.parent))
            try:
                scratch.chmod(0o755)
                make(scratch)
                scratch.rename(place)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        (self.folder / "used" / kind).mkdir(parents=True, exist_ok=True)
        (self.folder / "used" / kind / key).touch()
        return place

    def prune(self) -> None:
        """Delete what was not used for a long time, and what an interrupted build left."""
        for scratch in self.folder.glob(f"*/{SCRATCH}*"):
            shutil.rmtree(scratch, ignore_errors=True)
        for used in self.folder.glob("used/*/*"):
            kind = used.parent.name
            if kind != "bases" and time.time() - used.stat().st_mtime > KEEP_SECONDS:
                shutil.rmtree(self.place(kind, used.name), ignore_errors=True)
                used.unlink()

    @contextlib.contextmanager
    def only_user(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the cache against other builds; `waiting` is called when one is under way."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def default() -> Cache:
    """Return the user's cache."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Cache(home / "partita" / "images")


def key(*parts: object) -> str:
    """Return the name of an entry made from these parts; short, as mount options have a limit."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
