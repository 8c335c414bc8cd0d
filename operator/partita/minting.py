"""New ids: the impure side of ``domain.ids``.

Invariant: ids that one process makes grow strictly and carry the true time, at any rate up to 4,096 a millisecond; a
forked child shares no random state with its parent. Trade-off: 12 of the 74 free bits count instead of being random,
and no id costs a system call, since one or two are made for every step and none of them is a secret.
"""

from __future__ import annotations

import os
import random
from threading import Lock
from time import time_ns
from typing import Final
from uuid import UUID

from partita.domain.ids import uuid_of

_COUNTER_BITS: Final = 12
_COUNT: Final = (1 << _COUNTER_BITS) - 1
_VERSION: Final = 0x7 << 76
_VARIANT: Final = 0b10 << 62
_random = random.Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)
_lock = Lock()
_bits: Final = _random.getrandbits
_last = 0


def new_id() -> UUID:
    """A new UUIDv7 of now: larger than every one this process made before."""
    global _last  # noqa: PLW0603  # the order of ids is a property of the process
    with _lock:
        tick = max((time_ns() // 1_000_000) << _COUNTER_BITS, _last + 1)
        _last = tick
    return uuid_of((tick >> _COUNTER_BITS) << 80 | _VERSION | (tick & _COUNT) << 64 | _VARIANT | _bits(62))
