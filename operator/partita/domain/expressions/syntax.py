"""The syntax tree of an expression.

Invariant: a tree is plain data; it knows neither variables nor functions. Chains of ``&&`` and ``||`` are flat, so
that their length costs no depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Literal:
    """null, a boolean, a number or a string."""

    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable, or the head of a namespaced function."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``target.field``; with ``test`` it is ``has(target.field)``."""

    target: Syntax
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """``target[index]``."""

    target: Syntax
    index: Syntax


@dataclass(frozen=True, slots=True)
class Call:
    """``name(args)``; a receiver is the first argument, since every function may be written either way."""

    name: str
    args: tuple[Syntax, ...]
    method: bool
    at: int


@dataclass(frozen=True, slots=True)
class ListOf:
    """``[a, b]``."""

    items: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """``{key: value}``."""

    entries: tuple[tuple[Syntax, Syntax], ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """``test ? then : otherwise``."""

    test: Syntax
    then: Syntax
    otherwise: Syntax


@dataclass(frozen=True, slots=True)
class Logic:
    """A chain of ``&&`` or of ``||``."""

    operator: OneOf["&&", "||"]
    operands: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """``!a`` or ``-a``."""

    operator: OneOf["!", "-"]
    operand: Syntax


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, comparison or ``in``."""

    operator: str
    left: Syntax
    right: Syntax


@dataclass(frozen=True, slots=True)
class Comprehension:
    """``target.map(variable, body)`` and its siblings; ``guard`` is the filter of a three-part map."""

    macro: str
    target: Syntax
    variable: str
    body: Syntax
    guard: Syntax | None = None


Syntax = Literal | Ident | Select | Index | Call | ListOf | MapOf | Conditional | Logic | Unary | Binary | Comprehension


def children(node: Syntax) -> tuple[Syntax, ...]:
    """The direct parts of a node, in written order."""
    match node:
        case Literal() | Ident():
            return ()
        case MapOf(entries=entries):
            return tuple(part for entry in entries for part in entry)
        case Comprehension(target=target, body=body, guard=guard):
            return (target, body) if guard is None else (target, guard, body)
        case Call(args=parts) | ListOf(items=parts) | Logic(operands=parts):
            return parts
        case _:
            return _operands(node)


def _operands(node: Select | Index | Conditional | Unary | Binary) -> tuple[Syntax, ...]:
    match node:
        case Select(target=target):
            return (target,)
        case Index(target=target, index=index):
            return (target, index)
        case Conditional(test=test, then=then, otherwise=otherwise):
            return (test, then, otherwise)
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)


def walk(node: Syntax) -> Iterator[tuple[Syntax, int]]:
    """Every node with its depth; needs no recursion, so that a tree of any height can be measured."""
    stack = [(node, 1)]
    while stack:
        current, depth = stack.pop()
        yield current, depth
        stack.extend((child, depth + 1) for child in reversed(children(current)))


def weight(node: Syntax) -> int:
    """Number of nodes: what one evaluation visits at most."""
    return sum(1 for _ in walk(node))
