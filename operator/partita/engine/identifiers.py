"""New ids: UUIDs of version 7 from this process's clock and random bits.

Invariant: unique without asking anybody; roughly ordered by time, which keeps the indexes that hold them compact.
Trade-off: no counter that would order ids of one millisecond, and no system call for randomness, since an id is minted
or two for every step and none of them is a secret.
"""

from __future__ import annotations

import os
import random
import time
from uuid import UUID

from partita.domain.ids import make_id

_random = random.Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)


def new_id() -> UUID:
    """A new UUID of version 7."""
    return make_id(time.time_ns() // 1_000_000, _random.getrandbits(74))
