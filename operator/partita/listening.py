"""Where a process listens, as a setting says it: ``0.0.0.0:8080``, ``[::]:8080`` or ``localhost:8080``.

Invariant: a place that was accepted has an address and a port; whether the address is this machine's shows when it is
listened to.
"""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]]+)):([0-9]{1,5})")
_HIGHEST: Final = 65_535


def listening_problem(text: str) -> str:
    """What is wrong with a place to listen; empty if nothing is."""
    found = _PLACE.fullmatch(text)
    if found is None or not 1 <= int(found[3]) <= _HIGHEST:
        return f"is {text[:80]!r}; expected ADDRESS:PORT, such as 0.0.0.0:8080 or [::]:8080"
    return ""


def place_of(text: str) -> tuple[str, int]:
    """Address and port; of an empty text port 0, which is nowhere."""
    found = _PLACE.fullmatch(text)
    return (found[1] or found[2], int(found[3])) if found else ("", 0)
