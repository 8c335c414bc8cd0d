"""The peers: which there are, what runs them, and how much work a round of each is.

Invariant: everything else that is known of a peer is in its adapter. Trade-off: a round has runs for about two seconds
on two cores, so that a slow peer is not given minutes and a fast one not an instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

FOLDER: Final = Path(__file__).parent
Runtime = Literal["own", "python", "node", "go"]


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer."""

    name: str
    runtime: Runtime
    """``own``: the Python of the benchmark; the others: installed in the user's cache."""
    runs: int
    """Workflow runs of a round when none are asked for."""

    @property
    def adapter(self) -> str:
        """The adapter's module; for Node its file, for Go its folder."""
        stem = self.name.replace("-", "_")
        if self.runtime in ("node", "go"):
            return str(FOLDER / "adapters" / (f"{stem}.mjs" if self.runtime == "node" else stem))
        return f"bench.peers.adapters.{stem}"


PEERS: Final = (
    Peer("pgqueuer", "python", 1_500),
    Peer("graphile-worker", "node", 1_000),
    Peer("absurd", "python", 600),
    Peer("pg-boss", "node", 1_500),
    Peer("awa", "python", 600),
    Peer("procrastinate", "python", 400),
    Peer("river", "go", 1_500),
    Peer("dbos", "python", 300),
    Peer("hand-written", "own", 1_000),
)
