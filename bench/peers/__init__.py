"""``python -m bench peers``: other engines and queues on PostgreSQL, beside ours, on one server in one run.

Invariant: what runs inside another Python (``process`` and ``adapters``) imports nothing of Partita and nothing of the
parent's side, so that a peer's environment holds the peer alone.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str]) -> None:
    """Measure and print; SystemExit 1 with --strict when a peer gave no figures."""
    from bench.peers.script import main as measure  # noqa: PLC0415  # the peers' own Pythons import this package and not the parent's side

    measure(arguments)
