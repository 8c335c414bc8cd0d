"""New ids: the impure side of ``domain.ids``.

Invariant: ids that one process makes grow strictly and carry the true time, at any rate up to 4,096 a millisecond; a
forked child shares no random state with its parent. Trade-off: 12 of the 74 free bits count instead of being random,
and no id costs a system call, since one or two are made for every step and none of them is a secret.
"""

from __future__ import annotations

import os
import random
import time
from threading import Lock
from typing import Final
from uuid import UUID

from partita.domain.ids import make_id

_COUNTER_BITS: Final = 12
_random = random.Random()  # noqa: S311  # seeded by the system; ids are no secrets
os.register_at_fork(after_in_child=_random.seed)
_lock = Lock()
_last = 0


def new_id() -> UUID:
    """A new UUIDv7 of now: larger than every one this process made before."""
    global _last  # noqa: PLW0603  # the order of ids is a property of the process
    with _lock:
        tick = max((time.time_ns() // 1_000_000) << _COUNTER_BITS, _last + 1)
        _last = tick
    counter = tick & ((1 << _COUNTER_BITS) - 1)
    return make_id(tick >> _COUNTER_BITS, counter << 62 | _random.getrandbits(62))
