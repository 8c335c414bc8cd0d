"""What a table of fields is made of, and the words that the tables share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Field:
    """One field as shown to people."""

    name: str
    shape: str
    summary: str


@dataclass(frozen=True, slots=True)
class Shape:
    """One object: ``title`` is where it stands, as in messages and headings."""

    title: str
    fields: tuple[Field, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names of its fields."""
        return frozenset(field.name for field in self.fields)


DUR: Final = "duration"
DURX: Final = "duration or `${…}`"
COND: Final = "one `${…}`, boolean"
