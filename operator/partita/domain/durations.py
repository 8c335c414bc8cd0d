"""Durations as people write them: ``1h30m``, ``500ms``, ``7d``."""

from __future__ import annotations

import re
from typing import Final

PATTERN: Final = r"^([0-9]+(ms|s|m|h|d))+$"
"""The shape of a duration, the same as in the CRDs."""
LONGEST_MS: Final = 100 * 366 * 86_400_000
"""About a hundred years: what a deadline can be ahead and still be a date."""
LONGEST_TEXT: Final = 32
"""Characters of a duration, the same as in the CRDs."""
_WHOLE = re.compile(PATTERN.rstrip("$") + r"\Z")
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: str) -> int:
    """Milliseconds of a duration. Raises ValueError with a message that says what is expected."""
    if len(text) > LONGEST_TEXT or not _WHOLE.match(text):
        raise ValueError(
            f"{text[:LONGEST_TEXT]!r} is not a duration; expected numbers with ms, s, m, h or d, such as 1h30m"
        )
    total = sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(text))
    if total > LONGEST_MS:
        raise ValueError(f"{text!r} is longer than 100 years")
    return total
