"""Which Debian packages the collected files come from.

Purpose: scanners find packages of a root without dpkg in /var/lib/dpkg/status.d, one file a package, and the bill of
materials is made from the same files. Invariant: a package is listed when at least one of its files is in the image.
"""

from collections.abc import Iterable
from pathlib import Path

STATUS = "var/lib/dpkg/status.d"
GENERATED = {"/etc/ssl/certs/ca-certificates.crt": "ca-certificates"}
"""Files that a package makes when it is installed, which no list of files names."""


def record(root: Path, target: Path, files: Iterable[Path]) -> None:
    """Write the entry and the copyright file of every package of `root` that owns one of the files."""
    owners = GENERATED | _owners(root)
    names = {owners[name] for path in files for name in _spellings(path, root) if name in owners}
    entries = _entries(root)
    for name in sorted(names & entries.keys()):
        _write(target / STATUS / name, entries[name])
        licence = root / "usr/share/doc" / name / "copyright"
        if licence.is_file():
            _write(target / licence.relative_to(root), licence.read_text("utf-8", errors="replace"))


def _spellings(path: Path, root: Path) -> tuple[str, str]:
    """Return the name below / and the one that a package from before merged /usr has."""
    name = "/" + str(path.relative_to(root))
    return name, name.removeprefix("/usr")


def _owners(root: Path) -> dict[str, str]:
    lists = sorted((root / "var/lib/dpkg/info").glob("*.list"))
    return {file: path.stem.split(":")[0] for path in lists for file in path.read_text("utf-8").splitlines()}


def _entries(root: Path) -> dict[str, str]:
    status = root / "var/lib/dpkg/status"
    entries = status.read_text("utf-8").strip().split("\n\n") if status.is_file() else []
    return {entry.split("\n", 1)[0].removeprefix("Package: "): f"{entry}\n" for entry in entries}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
