"""Plain member paths such as ``nodes.pay.output.id``: by far the most frequent expressions.

Invariant: the same meaning as selecting field by field; only faster, and with the whole path in its errors.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.syntax import Call, Ident, Index, Literal, Select, Syntax
from partita.domain.expressions.values import Value, a_kind, kind
from partita.domain.nearest import did_you_mean

MOST_COMPARED: Final = 100
"""Fields of a map among which a similar name is looked for."""
Path = tuple[str, tuple[str, ...]]
"""A variable and the fields below it."""


def path_of(node: Syntax) -> Path | None:
    """The path that a tree consists of, or None if it is more than a path."""
    keys: list[str] = []
    while True:
        match node:
            case Select(target=target, field=field, test=False):
                keys.append(field)
                node = target
            case Index(target=target, index=Literal(value=str(key))):
                keys.append(key)
                node = target
            case Ident(name=name):
                return name, tuple(reversed(keys))
            case _:
                return None


def compile_path(root: str, keys: tuple[str, ...]) -> Callable[[Frame], Value]:
    """The function that follows a path."""

    def follow(frame: Frame) -> Value:
        try:
            value = frame.scope[root]
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            raise _explain(frame, root, keys) from None
        return value

    return follow


def _explain(frame: Frame, root: str, keys: tuple[str, ...]) -> ExpressionError:
    if root not in frame.scope:
        return ExpressionError(f"variable {root!r} does not exist here")
    value, at = frame.scope[root], root
    for position, key in enumerate(keys):
        if type(value) is not dict or key not in value:
            return absent(frame, at, key, value, (root, keys) if position else None)
        value, at = value[key], f"{at}.{key}"
    return ExpressionError(f"{at} cannot be read")


def absent(frame: Frame, at: str, key: Value, value: Value, whole: Path | None = None) -> ExpressionError:
    """The error for a field or an item that is not there."""
    if type(key) is not str and type(value) is not dict:
        return ExpressionError(f"{at}[{kind(key)}]: {at} is {a_kind(value)}; expected a list and an integer")
    if value is None:
        hint = f"; write get({whole[0]}, '{'.'.join(whole[1])}', default) if it may be absent" if whole else ""
        return ExpressionError(f"{at} is null and has no field {key!r}{hint}")
    if type(value) is not dict:
        return ExpressionError(f"{at} is {a_kind(value)} and has no field {key!r}")
    frame.hints -= 1
    similar = did_you_mean(str(key), islice(value, MOST_COMPARED)) if frame.hints >= 0 else ""
    return ExpressionError(f"{at} has no field {key!r}{similar}; use get() if it may be absent")


def shown(node: Syntax) -> str:
    """A tree as text for errors; long or computed parts are left out."""
    path = path_of(node)
    if path is not None:
        return ".".join((path[0], *path[1]))[:120]
    match node:
        case Index(target=target, index=Literal(value=value)):
            return f"{shown(target)}[{value}]"[:120]
        case Select(target=target, field=field):
            return f"{shown(target)}.{field}"[:120]
        case Call(name=name):
            return f"{name}(…)"
        case _:
            return "(…)"
