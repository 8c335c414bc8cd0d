"""Records that nobody changes and that are made for every step.

Purpose: ``record`` is ``dataclass(frozen=True, slots=True)`` as far as types go: the type checker refuses an assignment
to a field anywhere in this repository. Invariant: records are compared and hashed by their fields, as frozen ones are.
Trade-off: nothing stops an assignment at run time, because a frozen dataclass sets each field through
``object.__setattr__``, which makes it three to four times as slow to create; a step creates a dozen of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...


@overload
def record(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T] | None = None, /, *, kw_only: bool = False) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a record; its fields are declared as those of a dataclass."""
    make = dataclass(slots=True, unsafe_hash=True, kw_only=kw_only)
    return make if cls is None else make(cls)
