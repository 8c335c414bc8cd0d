"""A start request that was checked against its version, ready to be submitted."""

from __future__ import annotations

from hashlib import sha256

from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.events import RunStarted
from partita.store.starts import RunKey


@record
class Prepared:
    """The event of a start, and the names it claims."""

    event: RunStarted
    keys: tuple[RunKey, ...]
    input_hash: str


def hash_of(definition: str, input_: Payload) -> str:
    """What a key is bound to: the definition's name and the input with its defaults."""
    return sha256(f"{definition}\n{input_.text}".encode()).hexdigest()
