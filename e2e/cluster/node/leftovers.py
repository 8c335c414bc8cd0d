"""Which nodes were started on this machine, so that one whose owner and keeper were both killed is cleaned up later.

One file a node in a folder that a restart of the machine empties. A node that a person started has no owner and stays.
"""

import hashlib
import json
from pathlib import Path

from e2e.cluster.keepers import keeper_of
from e2e.cluster.processes import Running

FOLDER = Path("/run/partita-nodes")


def identity(home: Path) -> str:
    """Return a node's name on this machine, which follows from its folder."""
    return f"partita-{hashlib.sha256(str(home).encode()).hexdigest()[:10]}"


def note(home: Path, holder: int) -> None:
    """Note that a node was started; `holder` is the pid of its holder's `unshare`."""
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = FOLDER / f".{identity(home)}"
    keeper = keeper_of(home)
    content = {"home": str(home), "holder": holder, "keeper": None if keeper is None else keeper.pid}
    scratch.write_text(json.dumps(content), encoding="utf-8")
    scratch.replace(FOLDER / f"{identity(home)}.json")


def forget(home: Path) -> None:
    """Remove the note of a node that has ended."""
    (FOLDER / f"{identity(home)}.json").unlink(missing_ok=True)


def abandoned() -> list[tuple[Path, int]]:
    """Return folder and holder of every node whose keeper has ended without stopping it."""
    found: list[tuple[Path, int]] = []
    for path in sorted(FOLDER.glob("partita-*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue  # stopped by its owner meanwhile
        home, keeper = Path(content["home"]), content["keeper"]
        if keeper is not None and not Running("keeper", keeper, home).alive():
            found.append((home, content["holder"]))
    return found
