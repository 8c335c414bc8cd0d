"""A closed set of expressions, evaluated by a few lines: what generated definitions are written in.

Forms: ``a.b.c``, ``get(a, 'x.y', default)``, ``x == y``, ``x >= y``, ``x + y``, ``!x``, ``x.size()``,
``from.map(f, x)``, and literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Names = Mapping[str, Any]

_TOKEN = re.compile(r"\$\{([^}]*)\}")
_GET = re.compile(r"get\((\w+), '([^']*)', (.+)\)")
_MAP = re.compile(r"from\.map\(f, (.+)\)")
_NODE = re.compile(r"\bnodes\.([a-z]\w*)|get\(nodes, '([a-z]\w*)")
_LITERALS = {"null": None, "true": True, "false": False}
_MISSING = object()


class ExpressionFailed(Exception):
    """An expression has no value."""


def render(template: Any, names: Names) -> Any:
    """The value of a template: objects and lists by their members, texts by their tokens."""
    if isinstance(template, dict):
        return {key: render(value, names) for key, value in template.items()}
    if isinstance(template, list):
        return [render(value, names) for value in template]
    if not isinstance(template, str):
        return template
    whole = _TOKEN.fullmatch(template)
    if whole:
        return evaluate(whole[1], names)
    return _TOKEN.sub(lambda token: _text(evaluate(token[1], names)), template)


def holds(condition: str | None, names: Names) -> bool:
    """Whether a condition is true; one that is absent is."""
    if condition is None:
        return True
    value = render(condition, names)
    if not isinstance(value, bool):
        raise ExpressionFailed("not a boolean")
    return value


def named_nodes(value: Any) -> Iterator[str]:
    """The nodes that a template names, in order."""
    if isinstance(value, dict):
        for member in value.values():
            yield from named_nodes(member)
    elif isinstance(value, list):
        for member in value:
            yield from named_nodes(member)
    elif isinstance(value, str):
        for found in _NODE.finditer(value):
            yield found[1] or found[2]


def _text(value: Any) -> str:
    if value is None or isinstance(value, (list, dict)):
        raise ExpressionFailed("no text")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def evaluate(text: str, names: Names) -> Any:
    """The value of one expression."""
    text = text.strip()
    if text.startswith("from.map("):
        inner = _MAP.fullmatch(text)
        assert inner, text
        return [evaluate(inner[1], {**names, "f": one}) for one in names["from"]]
    for operator in (" == ", " >= ", " + "):
        if operator in text:
            left, right = text.split(operator)
            return _apply(operator.strip(), evaluate(left, names), evaluate(right, names))
    return _simple(text, names)


def _apply(operator: str, left: Any, right: Any) -> Any:
    if operator == "==":
        return left == right and isinstance(left, bool) == isinstance(right, bool)
    if isinstance(left, bool) or isinstance(right, bool) or not isinstance(left, int) or not isinstance(right, int):
        raise ExpressionFailed(f"no such overload {operator}")
    return left >= right if operator == ">=" else left + right


def _simple(text: str, names: Names) -> Any:
    if text.startswith("!"):
        value = evaluate(text[1:], names)
        if not isinstance(value, bool):
            raise ExpressionFailed("not a boolean")
        return not value
    if text.endswith(".size()"):
        value = evaluate(text[: -len(".size()")], names)
        if not isinstance(value, (list, dict, str)):
            raise ExpressionFailed("no size")
        return len(value)
    if (call := _GET.fullmatch(text)) is not None:
        found = _walk(_variable(call[1], names), call[2].split("."))
        return evaluate(call[3], names) if found is _MISSING or found is None else found
    if text in _LITERALS:
        return _LITERALS[text]
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    if text.startswith("'"):
        return text.strip("'")
    first, *rest = text.split(".")
    found = _walk(_variable(first, names), rest)
    if found is _MISSING:
        raise ExpressionFailed(f"{text} is missing")
    return found


def _variable(name: str, names: Names) -> Any:
    if name not in names:
        raise ExpressionFailed(f"no variable {name}")
    return names[name]


def _walk(value: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value
