"""Functions on lists and maps. None changes its arguments."""

from __future__ import annotations

from functools import cmp_to_key

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.functions.registry import expect, function
from partita.domain.expressions.operators import add
from partita.domain.expressions.values import NUMBERS, Key, Value, comparable, key_of, kind


@function(
    "value, path, default",
    "the value at a dotted path (numbers index lists); the default if missing or null",
    optional=1,
)
def get(_: Frame, value: Value, path: Value, default: Value = None) -> Value:
    for part in expect(path, str, "get").split("."):
        if type(value) is dict:
            value = value.get(part)
        elif type(value) is list and part.isdecimal() and part.isascii() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            return default
    return default if value is None else value


@function("value", "characters of a text, items of a list, entries of a map")
def size(_: Frame, value: Value) -> int:
    if type(value) in (str, list, dict):
        return len(value)
    raise ExpressionError(f"size({kind(value)}) is not defined; expected a text, list or map")


@function("from, to, step", "the integers from (0 if alone) up to (without) another", name="range", optional=2)
def range_(frame: Frame, *bounds: Value) -> list[int]:
    for bound in bounds:
        expect(bound, int, "range")
    if len(bounds) == 3 and bounds[2] == 0:
        raise ExpressionError("range: the step must not be 0")
    numbers = range(*bounds)
    start, stop, step = numbers.start, numbers.stop, numbers.step
    frame.items(max(0, (stop - start + step - (1 if step > 0 else -1)) // step))
    return [*numbers]


@function("list", "the items of its lists in one list; one level")
def flatten(frame: Frame, items: Value) -> list[Value]:
    frame.items(sum(len(item) if type(item) is list else 1 for item in expect(items, list, "flatten")))
    flat: list[Value] = []
    for item in items:
        if type(item) is list:
            flat.extend(item)
        else:
            flat.append(item)
    return flat


@function("list", "the sum of its numbers; 0 if empty", name="sum")
def sum_(frame: Frame, items: Value) -> Value:
    total: Value = None
    for item in expect(items, list, "sum"):
        if type(item) not in NUMBERS:
            raise ExpressionError(f"sum: expected numbers, found {kind(item)}")
        total = item if total is None else add(frame, total, item)
    return 0 if total is None else total


@function("list", "each value once, in order of first appearance")
def distinct(frame: Frame, items: Value) -> list[Value]:
    seen: set[Key] = set()
    kept: list[Value] = []
    for item in expect(items, list, "distinct"):
        if (key := key_of(frame, item)) not in seen:
            seen.add(key)
            kept.append(item)
    return kept


@function("list", "in ascending order; all numbers, all texts or all times", cost=12)
def sort(frame: Frame, items: Value) -> list[Value]:
    count = len(expect(items, list, "sort"))
    frame.spend(count * count.bit_length())

    def compare(left: Value, right: Value) -> int:
        if not comparable(frame, left, right):
            raise ExpressionError(f"sort: cannot order {kind(left)} and {kind(right)}")
        return int(left > right) - int(left < right)

    return sorted(items, key=cmp_to_key(compare))


@function("map, map, …", "one map; later entries win")
def merge(frame: Frame, *maps: Value) -> dict[str, Value]:
    merged: dict[str, Value] = {}
    for part in maps:
        merged.update(expect(part, dict, "merge"))
    frame.spend(len(merged))
    return merged
