"""Where a value stands, as text for people.

Invariant: a path is bounded, however long the names in it are and however deep it leads, so that one enormous name with
thousands of values below it is not copied thousands of times. Trade-off: such a path ends with ``…``.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 256
"""Characters after which a path does not grow any more."""
LONGEST_NAME: Final = 80
"""Characters of one name in a path, and of a value that a message repeats."""


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """The text, or its beginning with ``…`` behind it."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def member(path: str, name: str) -> str:
    """The path of a field of the value at ``path``."""
    if len(path) > LONGEST:
        return _ended(path)
    return f"{path}.{shortened(name)}" if path else shortened(name)


def element(path: str, index: int) -> str:
    """The path of an item of the list at ``path``."""
    return _ended(path) if len(path) > LONGEST else f"{path}[{index}]"


def _ended(path: str) -> str:
    return path if path.endswith("…") else f"{path}…"
