"""Reads forEach and repeat."""

from __future__ import annotations

import re
from typing import Final

from partita.domain.expressions import Template
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.reader import Fields
from partita.domain.manifest.variables import AFTER_ITERATION, DEFAULT_ITEM, IN_ITERATION, TAKEN
from partita.domain.model import ForEach, Repeat
from partita.domain.payload import Json, kind_of
from partita.domain.places import shortened

PERCENT: Final = re.compile(r"(100|[0-9]{1,2})%\Z")
"""``maxFailures`` as a share of the items."""
_ITEMS: Final = "a list, an object or one ${…} that gives one"
_FAILURES: Final = f"a whole number from 0 to {limits.PARALLEL:,}, or a percentage such as 10%"


def check_loops(fields: Fields) -> None:
    """Note two loops on one node."""
    if fields.has("forEach") and fields.has("repeat"):
        hint = "expected one of them, or a subflow that repeats inside forEach"
        fields.problem("repeat", f"forEach and repeat exclude each other; {hint}")


def read_for_each(node: Fields, expressions: Expressions) -> ForEach | None:
    """``forEach``."""
    fields = node.fields("forEach", shapes.FOR_EACH)
    if fields is None:
        return None
    fields.need("items", _ITEMS)
    items = _items(fields, expressions)
    number, percent = _failures(fields)
    parallel = fields.integer("maxParallel", 1, limits.PARALLEL)
    join_count = fields.integer("joinCount", 1, limits.PARALLEL) or 0
    variable = _variable(fields)
    cancel = fields.flag("cancelRemaining") or False
    if items is None:
        return None
    _check_count(fields, items, join_count)
    return ForEach(items, variable, parallel or limits.DEFAULT_PARALLEL, number, percent, join_count, cancel)


def _items(fields: Fields, expressions: Expressions) -> Template | None:
    value = fields.raw("items")
    if value is None:
        return None
    if isinstance(value, str):
        return expressions.single(fields, "items", _ITEMS, (list, dict))
    if isinstance(value, list | dict):
        return expressions.template(fields, "items", value)
    fields.problem("items", f"is {kind_of(value)}; expected {_ITEMS}")
    return None


def _check_count(fields: Fields, items: Template, join_count: int) -> None:
    """A list that is written out tells its length, whatever its items are."""
    written: Json = items.render({}) if items.constant else items.source
    if isinstance(written, list | dict) and join_count > len(written):
        fields.problem("joinCount", f"is {join_count}, but items has {len(written)}; expected at most as many")


def _variable(fields: Fields) -> str:
    name = fields.identifier("as")
    if name in TAKEN:
        fields.problem("as", f"{name!r} has a meaning already in expressions; expected another name, such as line")
    return name or DEFAULT_ITEM


def _failures(fields: Fields) -> tuple[int | None, int | None]:
    """``maxFailures`` as a number and as a percentage."""
    value = fields.raw("maxFailures")
    if isinstance(value, str):
        found = PERCENT.match(value)
        if found is None:
            fields.problem("maxFailures", f"{shortened(value)!r} does not fit; expected {_FAILURES}")
        return None, int(found[1]) if found else None
    if value is not None and type(value) not in (int, float):
        fields.problem("maxFailures", f"is {kind_of(value)}; expected {_FAILURES}")
        return None, None
    return fields.integer("maxFailures", 0, limits.PARALLEL), None


def read_repeat(node: Fields, expressions: Expressions) -> Repeat | None:
    """``repeat``."""
    fields = node.fields("repeat", shapes.REPEAT)
    if fields is None:
        return None
    fields.exactly_one("until", "while")
    most = fields.integer("maxIterations", 1, limits.ITERATIONS)
    return Repeat(
        until=expressions.condition(fields, "until", *AFTER_ITERATION),
        while_=expressions.condition(fields, "while", *AFTER_ITERATION),
        delay=expressions.duration(fields, "delay", IN_ITERATION),
        max_iterations=most or limits.DEFAULT_ITERATIONS,
        collect=expressions.single(fields, "collect", "one ${…}", more=AFTER_ITERATION),
    )
