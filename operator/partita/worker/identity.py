"""A worker's id: new at every start, so that a lease names exactly one life of one process."""

from __future__ import annotations

import base64
from typing import Final

from partita.minting import new_id

_RANDOM_BITS: Final = 40


def new_worker_id() -> str:
    """An id for a worker that starts now, in this process: 12 characters, made of 32 bits of time and 40 of chance.

    It is short because it is stored with every lease and in every line of history; where the worker runs is in
    ``workers``. It is made when a worker starts and not when it is built, so that forks of one process get ids of their
    own. No character of it means anything to a shell.
    """
    made = new_id().int
    seconds = (made >> 80) // 1_000 & 0xFFFF_FFFF
    number = seconds << _RANDOM_BITS | made & (1 << _RANDOM_BITS) - 1
    return base64.b64encode(number.to_bytes(9, "big"), b"._").decode()
