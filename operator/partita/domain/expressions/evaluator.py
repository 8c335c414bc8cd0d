"""Turns a syntax tree into nested Python functions.

Invariant: exactly CEL's meaning, except where the language says otherwise: sizes count code points, a map is walked in
the order of its keys, ``has`` is false on null. The trade-off against an embedded CEL library: about as fast on a small
document and far faster on a large one, since nothing is converted, and every visit is counted while it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from partita.domain.expressions.analysis import TYPES, function_of
from partita.domain.expressions.comprehensions import MACROS, swallowed
from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.functions import charge
from partita.domain.expressions.operators import OPERATIONS, negate
from partita.domain.expressions.paths import absent, compile_path, path_of, shown
from partita.domain.expressions.syntax import (
    Binary,
    Call,
    Comprehension,
    Conditional,
    Ident,
    Index,
    ListOf,
    Literal,
    Logic,
    MapOf,
    Select,
    Syntax,
    Unary,
    weight,
)
from partita.domain.expressions.values import CONTAINER_COST, TypeName, Value, a_kind, kind

Evaluate = Callable[[Frame], Value]
Bound = tuple[str, ...]
"""Loop variables in force, outermost first; the position is the slot in the frame."""


def compile_tree(node: Syntax, bound: Bound = ()) -> Evaluate:
    """The function that evaluates a tree on a frame; it raises ExpressionError only, but for host limits."""
    path = path_of(node)
    if path is not None and path[0] not in bound and path[0] not in TYPES:
        return compile_path(*path)
    return _COMPILERS[type(node)](node, bound)


def _literal(node: Literal, _: Bound) -> Evaluate:
    value = node.value
    return lambda _: value


def _ident(node: Ident, bound: Bound) -> Evaluate:
    name = node.name
    if name in bound:
        slot = len(bound) - 1 - bound[::-1].index(name)
        return lambda frame: frame.locals[slot]
    type_name = TypeName(name)
    return lambda frame: frame.scope.get(name, type_name)


def _select(node: Select, bound: Bound) -> Evaluate:
    target = compile_tree(node.target, bound)
    field = node.field
    if node.test:
        return _has(target, field, node)

    def select(frame: Frame) -> Value:
        value = target(frame)
        try:
            return value[field]
        except (KeyError, TypeError, IndexError):
            raise absent(frame, shown(node.target), field, value) from None

    return select


def _has(target: Evaluate, field: str, node: Select) -> Evaluate:
    def has(frame: Frame) -> bool:
        value = target(frame)
        if type(value) is dict:
            return field in value
        if value is None:
            return False
        raise ExpressionError(f"has({shown(node.target)}.{field}): {shown(node.target)} is {a_kind(value)}, not a map")

    return has


def _index(node: Index, bound: Bound) -> Evaluate:
    target, index = compile_tree(node.target, bound), compile_tree(node.index, bound)

    def at(frame: Frame) -> Value:
        value, position = target(frame), index(frame)
        if type(value) is list and type(position) is int:
            if 0 <= position < len(value):
                return value[position]
            raise ExpressionError(f"{shown(node.target)}[{position}]: the list has {len(value)} items")
        if type(value) is dict and type(position) is str and position in value:
            return value[position]
        raise absent(frame, shown(node.target), position, value)

    return at


def _call(node: Call, bound: Bound) -> Evaluate:
    function, args = function_of(node)
    parts = [compile_tree(arg, bound) for arg in args]
    body, cost = function.body, function.cost

    def call(frame: Frame) -> Value:
        values = [part(frame) for part in parts]
        charge(frame, values, cost)
        return body(frame, *values)

    return call


def _list_of(node: ListOf, bound: Bound) -> Evaluate:
    parts = [compile_tree(item, bound) for item in node.items]

    def build(frame: Frame) -> Value:
        frame.spend(CONTAINER_COST)
        return [part(frame) for part in parts]

    return build


def _map_of(node: MapOf, bound: Bound) -> Evaluate:
    entries = [(compile_tree(key, bound), compile_tree(value, bound)) for key, value in node.entries]

    def build(frame: Frame) -> Value:
        frame.spend(CONTAINER_COST)
        result: dict[str, Value] = {}
        for key, value in entries:
            name = key(frame)
            if type(name) is not str:
                raise ExpressionError(f"a map's key must be a string, found {kind(name)}")
            if name in result:
                raise ExpressionError(f"a map has the key {name!r} twice")
            result[name] = value(frame)
        return result

    return build


def _conditional(node: Conditional, bound: Bound) -> Evaluate:
    test, then, otherwise = (compile_tree(part, bound) for part in (node.test, node.then, node.otherwise))

    def choose(frame: Frame) -> Value:
        chosen = test(frame)
        if chosen is True:
            return then(frame)
        if chosen is False:
            return otherwise(frame)
        raise ExpressionError(f"a ? b : c needs a boolean before the question mark, found {kind(chosen)}")

    return choose


def _logic(node: Logic, bound: Bound) -> Evaluate:
    return logic([compile_tree(part, bound) for part in node.operands], node.operator)


def logic(parts: Sequence[Evaluate], operator: str) -> Evaluate:
    """A chain of ``&&`` or ``||``: the deciding value wins over an error beside it, on either side."""
    decides = operator == "||"

    def chain(frame: Frame) -> bool:
        failure: ExpressionError | None = None
        for part in parts:
            try:
                value = part(frame)
            except ExpressionError as error:
                failure = swallowed(frame, failure, error)
                continue
            if value is decides:
                return bool(value)
            if type(value) is not bool:
                failure = failure or ExpressionError(f"{operator} needs booleans, found {kind(value)}")
        if failure is not None:
            raise failure
        return not decides

    return chain


def _unary(node: Unary, bound: Bound) -> Evaluate:
    operand = compile_tree(node.operand, bound)
    if node.operator == "-":
        return lambda frame: negate(operand(frame))

    def invert(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is not bool:
            raise ExpressionError(f"! needs a boolean, found {kind(value)}")
        return value is False

    return invert


def _binary(node: Binary, bound: Bound) -> Evaluate:
    left, right = compile_tree(node.left, bound), compile_tree(node.right, bound)
    operation = OPERATIONS[node.operator]
    return lambda frame: operation(frame, left(frame), right(frame))


def _comprehension(node: Comprehension, bound: Bound) -> Evaluate:
    inner = (*bound, node.variable)
    body = compile_tree(node.body, inner)
    guard = compile_tree(node.guard, inner) if node.guard is not None else None
    cost = weight(node.body) + (weight(node.guard) if node.guard is not None else 0)
    target = compile_tree(node.target, bound)
    run = MACROS[node.macro](body, guard, len(bound))

    def over(frame: Frame) -> Value:
        items = target(frame)
        if type(items) is dict:
            items = sorted(items)
        elif type(items) is not list:
            raise ExpressionError(f"{node.macro} needs a list or a map, found {kind(items)}")
        frame.spend(len(items) * cost)
        return run(frame, items)

    return over


_COMPILERS: Final[dict[type, Callable[..., Evaluate]]] = {
    Literal: _literal,
    Ident: _ident,
    Select: _select,
    Index: _index,
    Call: _call,
    ListOf: _list_of,
    MapOf: _map_of,
    Conditional: _conditional,
    Logic: _logic,
    Unary: _unary,
    Binary: _binary,
    Comprehension: _comprehension,
}
