"""The running Python without what only its developers and its interactive users need.

Invariant: compiled files stand beside the modules and are never checked or written again (the root is read-only), and
compiling the same files again gives the same bytes.
"""

import compileall
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

_MODULES = (
    "__pycache__", "config-*", "dist-packages", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data",
    "site-packages", "sitecustomize.py", "test", "tests", "tkinter", "turtle.py", "turtledemo", "EXTERNALLY-MANAGED",
)  # fmt: skip
_EXTENSIONS = re.compile(
    r"_(?:crypt|ctypes_test|curses|curses_panel|dbm|gdbm|sqlite3|test\w*|tkinter|xxtestfuzz|xxsubinterpreters)"
    r"|nis|ossaudiodev|readline|xxlimited\w*"
)
"""Extension modules left out: terminals, local databases and the interpreter's own tests, with all their libraries."""


def interpreter() -> Path:
    """Return the real file of the running interpreter, outside every virtual environment."""
    return Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}").resolve()


def copy_into(target: Path) -> list[Path]:
    """Copy interpreter and standard library below `target`, at the same paths; returns what was read."""
    program, library = interpreter(), Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    place = target / program.relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, place)
    for name in ("python", "python3"):
        (place.parent / name).symlink_to(program.name)
    copied = target / library.relative_to("/")
    shutil.copytree(library, copied, ignore=_left_out)
    compile_below(copied, target)
    return [program, *(library / path.relative_to(copied) for path in _files(copied))]


def compile_below(folder: Path, root: Path) -> None:
    """Compile every module below `folder`, under the name that it has when `root` is the root."""
    compileall.compile_dir(
        folder,
        quiet=1,
        force=True,
        stripdir=str(root),
        prependdir="/",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )


def _left_out(folder: str, names: list[str]) -> set[str]:
    ignored = shutil.ignore_patterns(*_MODULES)(folder, names)
    return set(ignored) | {name for name in names if name.endswith(".so") and _EXTENSIONS.fullmatch(name.split(".")[0])}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
