"""Keys of advisory locks: the ways in which processes of one installation take turns.

Invariant: two schemas of one database never share a key, nor do two purposes.
"""

from __future__ import annotations

from hashlib import sha256


def advisory_key(schema: str, purpose: str) -> int:
    """The 64-bit key for ``pg_advisory_xact_lock`` and its relatives."""
    digest = sha256(f"partita/{schema}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
