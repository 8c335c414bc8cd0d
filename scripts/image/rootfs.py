"""Collects a root file system: `python -m image.rootfs TARGET [--python] [--loads FOLDER]… [--user NAME:ID:HOME]…`.

Purpose: what the final stage of an image holds below /, besides its own product. Invariant: no shell and no set-uid
file gets in unless it is named. Trade-off: files are copied by what is known to be opened, and a test has to run the
programs to see that nothing is missing.
"""

import argparse
import shutil
from pathlib import Path

from . import packages, python
from .libraries import Libraries

ROOT = Path("/")
CERTIFICATES = Path("etc/ssl/certs/ca-certificates.crt")
LOCALE = Path("usr/lib/locale/C.utf8")
NAMES = "passwd: files\ngroup: files\nhosts: files dns\n"
MERGED = ("bin", "sbin", "lib", "lib64")


def main() -> None:
    """Collect what the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m image.rootfs", description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--python", action="store_true", help="this Python and its standard library")
    parser.add_argument("--loads", type=Path, action="append", default=[], help="folder whose programs are to load")
    parser.add_argument("--user", action="append", default=[], help="account as NAME:ID:HOME")
    options = parser.parse_args()
    collect(options.target, options.loads, options.user, with_python=options.python)


def collect(target: Path, folders: list[Path], users: list[str], *, with_python: bool) -> None:
    """Make `target`: folders, accounts, certificates, locale, Python, and the libraries that all its programs load."""
    _skeleton(target)
    _accounts(target, users)
    files = [*_shared(target), *(python.copy_into(target) if with_python else [])]
    loaded = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    libraries = Libraries(ROOT, target)
    libraries.add_needed_by([*files, *loaded])
    packages.record(ROOT, target, [*files, *libraries.taken.values()])


def _skeleton(target: Path) -> None:
    for name in MERGED:
        (target / "usr" / name).mkdir(parents=True)
        (target / name).symlink_to(f"usr/{name}")
    for name in ("dev", "etc", "proc", "run", "sys", "tmp", "var/lib"):
        (target / name).mkdir(parents=True)
    (target / "tmp").chmod(0o1777)
    (target / "var/run").symlink_to("/run")


def _accounts(target: Path, users: list[str]) -> None:
    accounts = [("root", "0", "/root"), ("nobody", "65534", "/nonexistent"), *(tuple(one.split(":")) for one in users)]
    lines = [f"{name}:x:{number}:{number}::{home}:/sbin/nologin\n" for name, number, home in accounts]
    (target / "etc/passwd").write_text("".join(lines), "utf-8")
    groups = [f"{name}:x:{number}:\n" for name, number, _ in accounts]
    (target / "etc/group").write_text("".join(groups), "utf-8")
    (target / "etc/nsswitch.conf").write_text(NAMES, "utf-8")


def _shared(target: Path) -> list[Path]:
    """Copy what programs read besides their libraries; returns what was read."""
    sources = [ROOT / CERTIFICATES, *sorted((ROOT / LOCALE).rglob("*")), ROOT / "etc/os-release", ROOT / "etc/services"]
    found = [path for path in sources if path.is_file()]
    for path in found:
        place = target / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return [path.resolve() for path in found]


if __name__ == "__main__":
    main()
