"""What an expression refers to, read from its tree.

Invariant: every node an expression can read is known before a run starts, because nodes are only named literally; the
edges of a workflow rest on it. Loop variables hide variables of the same name within their body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from partita.domain.expressions.errors import ExpressionSyntaxError
from partita.domain.expressions.functions import FUNCTIONS, Function
from partita.domain.expressions.parser import MACROS
from partita.domain.expressions.paths import path_of
from partita.domain.expressions.syntax import Call, Comprehension, Ident, Index, Literal, Select, Syntax, children
from partita.domain.expressions.values import TYPE_NAMES
from partita.domain.nearest import did_you_mean
from partita.domain.patterns import compile_pattern

NODE_FIELDS: Final = ("output", "error", "state", "attempt", "event")
"""What can be read of a node: ``nodes.<name>.<field>``."""
RUN_FIELDS: Final = ("id", "name", "namespace", "status", "reason", "error", "output", "startedAt", "scheduledAt")
"""What can be read of the run: ``run.<field>``."""
_IN_ITEM: Final = "in input, timeout and retry of a node with forEach"
_IN_ITERATION: Final = "in repeat, and in input, timeout and retry of its node"
ELSEWHERE: Final = {
    "from": "in the fields of nodes",
    "error": "in when of retry and onError, and in undo.input",
    "events": "in waitForEvent.until",
    "item": _IN_ITEM,
    "index": _IN_ITEM,
    "key": _IN_ITEM,
    "previous": _IN_ITERATION,
    "iteration": _IN_ITERATION,
    "output": "in until, while and collect of repeat, and in undo.input",
}
"""Variables that exist in some fields only, and where."""
TYPES: Final = frozenset(TYPE_NAMES.values())
"""Identifiers that stand for a type, to be compared with ``type(x)``."""


_ELSEWHERE_CALLED: Final = {
    **dict.fromkeys(("len", "length", "count"), "size"),
    **dict.fromkeys(("str", "toString", "to_string"), "string"),
    **dict.fromkeys(("toLower", "lowerAscii", "toLowerCase", "downcase"), "lower"),
    **dict.fromkeys(("toUpper", "upperAscii", "toUpperCase", "upcase"), "upper"),
    **dict.fromkeys(("float", "number"), "double"),
    **dict.fromkeys(("toJson", "tojson", "toJSON"), "json.encode"),
    **dict.fromkeys(("fromJson", "fromjson", "fromJSON"), "json.parse"),
    **dict.fromkeys(("default", "getOrDefault"), "get"),
    "includes": "contains",
    "unique": "distinct",
    "strip": "trim",
}
"""What functions are called in other languages."""


@dataclass(frozen=True, slots=True)
class References:
    """What an expression or template reads."""

    nodes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    """Variables: input, config, run, now, from, error, events, previous, …; ``nodes`` is not among them."""
    order: tuple[str, ...] = ()
    """The nodes in the order in which they are first named."""
    constants: frozenset[tuple[str, ...]] = frozenset()
    """Paths below ``config`` that must exist; not those that ``has`` asks for."""

    def __or__(self, other: References) -> References:
        return merged((self, other))

    def __bool__(self) -> bool:
        return bool(self.nodes or self.names)


NOTHING: Final = References()


def merged(parts: Iterable[References]) -> References:
    """All that any of the parts reads."""
    nodes: dict[str, None] = {}
    names: set[str] = set()
    constants: set[tuple[str, ...]] = set()
    for part in parts:
        nodes.update(dict.fromkeys(part.order))
        names |= part.names
        constants |= part.constants
    if not nodes and not names:
        return NOTHING
    return References(frozenset(nodes), frozenset(names), tuple(nodes), frozenset(constants))


def function_of(call: Call) -> tuple[Function, tuple[Syntax, ...]]:
    """The function that a call means, and its arguments. Raises ExpressionSyntaxError."""
    name, args = call.name, call.args
    if call.method and isinstance(args[0], Ident) and f"{args[0].name}.{name}" in FUNCTIONS:
        name, args = f"{args[0].name}.{name}", args[1:]
    found = FUNCTIONS.get(name)
    if found is None:
        raise ExpressionSyntaxError(f"column {call.at + 1}: {_no_function(name)}")
    if not found.least <= len(args) <= found.most:
        raise ExpressionSyntaxError(f"column {call.at + 1}: {name} takes ({found.parameters}), found {len(args)}")
    return found, args


def _no_function(name: str) -> str:
    if name in MACROS:
        body = "value" if name == "map" else "condition"
        return f"{name} is a macro that takes two arguments; expected list.{name}(x, {body})"
    if name in _ELSEWHERE_CALLED:
        return f"unknown function {name!r} (did you mean {_ELSEWHERE_CALLED[name]!r}?)"
    return f"unknown function {name!r}{did_you_mean(name, FUNCTIONS)}"


def analyse(tree: Syntax, variables: frozenset[str] | None) -> References:
    """The references of a tree. Raises ExpressionSyntaxError for what can never be evaluated.

    ``variables`` are those that exist in this field; None allows all.
    """
    reader = _Reader(variables)
    reader.read(tree, frozenset())
    return References(frozenset(reader.nodes), frozenset(reader.names), tuple(reader.nodes), reader.needed())


class _Reader:
    def __init__(self, variables: frozenset[str] | None) -> None:
        self._variables = variables
        self.nodes: dict[str, None] = {}
        self.names: set[str] = set()
        self._constants: set[tuple[str, ...]] = set()
        self._tested: set[tuple[str, ...]] = set()

    def needed(self) -> frozenset[tuple[str, ...]]:
        """The constants that are read whether they exist or not."""
        return frozenset(
            path
            for path in self._constants
            if not any(path[:length] in self._tested for length in range(1, len(path) + 1))
        )

    def read(self, node: Syntax, bound: frozenset[str]) -> None:
        if "nodes" not in bound and self._node_path(node):
            return
        if isinstance(node, Select | Index) and "config" not in bound and self._constant(node):
            return
        match node:
            case Ident(name=name):
                if name not in bound:
                    self._variable(name)
            case Select(target=Ident(name="run"), field=field) if "run" not in bound and field not in RUN_FIELDS:
                raise _no_field("run", field, RUN_FIELDS)
            case Call():
                self._call(node, bound)
            case Comprehension(target=target, variable=variable, body=body, guard=guard):
                self.read(target, bound)
                for part in (guard, body) if guard is not None else (body,):
                    self.read(part, bound | {variable})
            case _:
                for child in children(node):
                    self.read(child, bound)

    def _call(self, call: Call, bound: frozenset[str]) -> None:
        found, args = function_of(call)
        if found.name == "matches":
            _check_pattern(args[1])
        if found.name == "get" and args[0] == Ident("nodes") and "nodes" not in bound:
            if not (isinstance(args[1], Literal) and isinstance(args[1].value, str)):
                raise ExpressionSyntaxError("get(nodes, …) needs a literal path, such as get(nodes, 'pay.output.id')")
            name, *rest = args[1].value.split(".")
            self._node(name, rest[0] if rest else None)
            args = args[2:]
        for arg in args:
            self.read(arg, bound)

    def _constant(self, node: Select | Index) -> bool:
        """Take a path below ``config``; False for anything else."""
        tested = isinstance(node, Select) and node.test
        path = path_of(Select(node.target, node.field)) if isinstance(node, Select) else path_of(node)
        if path is None or path[0] != "config" or not path[1]:
            return False
        self._variable("config")
        (self._tested if tested else self._constants).add(path[1])
        return True

    def _node_path(self, node: Syntax) -> bool:
        """Take ``nodes.x``, ``nodes['x']`` or one of these with a field; False for anything else."""
        if (name := _named_node(node)) is not None:
            self._node(name, None)
        elif isinstance(node, Select) and (name := _named_node(node.target)) is not None:
            self._node(name, node.field)
        elif isinstance(node, Index) and node.target == Ident("nodes"):
            raise ExpressionSyntaxError("nodes[…] needs a literal name, such as nodes.pay.output")
        else:
            return False
        return True

    def _node(self, name: str, field: str | None) -> None:
        if field is not None and field not in NODE_FIELDS:
            raise _no_field(f"nodes.{name}", field, NODE_FIELDS)
        self.nodes[name] = None

    def _variable(self, name: str) -> None:
        if name == "nodes":
            raise ExpressionSyntaxError("nodes needs the name of a node, such as nodes.pay.output")
        if name in TYPES and (self._variables is None or name not in self._variables):
            return
        if self._variables is not None and name not in self._variables:
            hint = did_you_mean(name, self._variables)
            known = ", ".join(sorted(self._variables))
            if name in ELSEWHERE:
                raise ExpressionSyntaxError(f"{name} exists only {ELSEWHERE[name]}; expected one of {known}")
            raise ExpressionSyntaxError(f"unknown variable {name!r}{hint}; expected one of {known}")
        self.names.add(name)


def _no_field(owner: str, field: str, known: tuple[str, ...]) -> ExpressionSyntaxError:
    expected = ", ".join(known)
    return ExpressionSyntaxError(
        f"{owner} has no field {field!r}{did_you_mean(field, known)}; expected one of {expected}"
    )


def _check_pattern(pattern: Syntax) -> None:
    """A pattern is compiled with the definition, never while a run is decided: that can take many milliseconds."""
    if not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
        raise ExpressionSyntaxError("matches needs a literal pattern, such as matches(input.sku, '^[A-Z]+$')")
    try:
        compile_pattern(pattern.value)
    except ValueError as error:
        raise ExpressionSyntaxError(f"matches: {pattern.value[:80]!r} {error}") from error


def _named_node(node: Syntax) -> str | None:
    match node:
        case Select(target=Ident(name="nodes"), field=name):
            return name
        case Index(target=Ident(name="nodes"), index=Literal(value=str(name))):
            return name
        case _:
            return None
