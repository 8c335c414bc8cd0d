"""The files of this checkout, for tests about the repository itself."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "operator" / "partita"


@cache
def files() -> tuple[Path, ...]:
    """Every file that is tracked, or would be by `git add .`; deleted ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = {ROOT / name for name in listed.split("\0") if name}
    return tuple(sorted(path for path in found if path.is_file()))


def files_of(*suffixes: str) -> tuple[Path, ...]:
    """Those with one of these suffixes."""
    return tuple(path for path in files() if path.suffix in suffixes)


def text(path: Path) -> str:
    """The content of a text file; empty for one that is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def short(path: Path) -> str:
    """A file's name for messages."""
    return str(path.relative_to(ROOT))
