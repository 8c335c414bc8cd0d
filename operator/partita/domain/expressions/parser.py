"""CEL's grammar, by precedence climbing.

Invariant: accepts what the CEL specification accepts, less what JSON has no use for (bytes, unsigned integers,
messages). Macros are expanded here, so that later stages see comprehensions and not calls. Our own parser, because the
edges of a workflow, its nesting and its budgets are read from the tree, which no binding gives.
"""

from __future__ import annotations

from typing import Final

from partita.domain.expressions import limits
from partita.domain.expressions.errors import ExpressionSyntaxError
from partita.domain.expressions.lexer import Token, next_token
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
    children,
    walk,
)

RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"}
    | {"package", "namespace", "null", "return", "true", "var", "void", "while"}
)
"""Words that CEL keeps for itself: no variable may be called so."""

MACROS: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})
KEYWORDS: Final = frozenset({"true", "false", "null", "in"})
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_BINDING: Final = {
    "||": 1, "&&": 2,
    "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_INT_MAX: Final = 2**63 - 1


def parse(source: str) -> Syntax:
    """The tree of a whole expression. Raises ExpressionSyntaxError."""
    parser = Parser(source)
    tree = parser.expression()
    if parser.token.kind != "end":
        raise parser.unexpected("the end of the expression")
    return _bounded(tree)


def _bounded(tree: Syntax) -> Syntax:
    if max(depth for _, depth in walk(tree)) > limits.DEPTH:
        raise ExpressionSyntaxError(f"is nested more than {limits.DEPTH} levels deep; split it with a compute node")
    if _nested(tree) > limits.COMPREHENSIONS:
        raise ExpressionSyntaxError(
            f"nests more than {limits.COMPREHENSIONS} of map, filter, all, exists; split it with a compute node"
        )
    return tree


def _nested(node: Syntax) -> int:
    """How many comprehensions stand in each other's bodies at most; the tree's height is already bounded."""
    match node:
        case Comprehension(target=target, body=body, guard=guard):
            inner = max(_nested(body), _nested(guard) if guard is not None else 0)
            return max(_nested(target), 1 + inner)
        case _:
            return max((_nested(child) for child in children(node)), default=0)


class Parser:
    """Reads one expression from ``start`` on; ``end`` is behind the last token read."""

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self._nesting = 0
        self.token, self.end = next_token(text, start)

    def unexpected(self, expected: str) -> ExpressionSyntaxError:
        """The error for a token that does not fit."""
        found = "the end" if self.token.kind == "end" else repr(self._text[self.token.at : self.end])
        return ExpressionSyntaxError(f"column {self.token.at + 1}: expected {expected}, found {found}")

    def expression(self) -> Syntax:
        """A conditional or anything that binds tighter."""
        self._nesting += 1
        if self._nesting > limits.NESTING:
            raise ExpressionSyntaxError(f"nests more than {limits.NESTING} parentheses; split it with a compute node")
        tree = self._binary(1)
        if self._accept("?"):
            then = self._binary(1)
            self._expect(":")
            tree = Conditional(tree, then, self.expression())
        self._nesting -= 1
        return tree

    def _advance(self) -> Token:
        token = self.token
        self.token, self.end = next_token(self._text, self.end)
        return token

    def _accept(self, operator: str) -> bool:
        if self.token.kind == "op" and self.token.value == operator:
            self._advance()
            return True
        return False

    def _expect(self, operator: str) -> None:
        if not self._accept(operator):
            raise self.unexpected(repr(operator))

    def _operator(self) -> str:
        kind, value, _ = self.token
        return str(value) if kind == "op" or (kind == "ident" and value == "in") else ""

    def _binary(self, lowest: int) -> Syntax:
        left = self._unary()
        while (binding := _BINDING.get(operator := self._operator(), 0)) >= lowest:
            self._advance()
            left = _combine(operator, left, self._binary(binding + 1))
        return left

    def _unary(self) -> Syntax:
        signs: list[str] = []
        while self._operator() in ("!", "-"):
            signs.append(str(self._advance().value))
        negative = bool(signs) and signs[-1] == "-" and self.token.kind in ("int", "float")
        tree = self._postfix(negative=negative)
        for sign in reversed(signs[:-1] if negative else signs):
            tree = Unary("!" if sign == "!" else "-", tree)
        return tree

    def _postfix(self, *, negative: bool) -> Syntax:
        tree = self._primary(negative=negative)
        while True:
            if self._accept("."):
                tree = self._member(tree)
            elif self._accept("["):
                tree = Index(tree, self.expression())
                self._expect("]")
            else:
                return tree

    def _member(self, target: Syntax) -> Syntax:
        if self.token.kind != "ident" or self.token.value in KEYWORDS:
            raise self.unexpected("a field or function name")
        token = self._advance()
        name = str(token.value)
        if not self._accept("("):
            return Select(target, name)
        args = self._list(")")
        if name in MACROS and 2 <= len(args) <= 3:
            return _comprehension(name, target, args, token.at)
        return Call(name, (target, *args), method=True, at=token.at)

    def _primary(self, *, negative: bool) -> Syntax:
        token = self.token
        if token.kind in ("int", "float", "string"):
            return self._literal(negative=negative)
        if token.kind == "ident":
            return self._named()
        if self._accept("("):
            tree = self.expression()
            self._expect(")")
            return tree
        if self._accept("["):
            return ListOf(self._list("]", trailing=True))
        if self._accept("{"):
            return MapOf(self._entries())
        raise self.unexpected("a value")

    def _literal(self, *, negative: bool) -> Literal:
        token = self._advance()
        value = token.value
        if isinstance(value, int) and value > _INT_MAX + negative:
            raise ExpressionSyntaxError(f"column {token.at + 1}: {value} is larger than a 64-bit integer")
        return Literal(-value if negative and not isinstance(value, str) else value)

    def _named(self) -> Syntax:
        token = self._advance()
        name = str(token.value)
        if name in _CONSTANTS:
            return Literal(_CONSTANTS[name])
        if name in RESERVED:
            raise ExpressionSyntaxError(f"column {token.at + 1}: {name!r} is a word of the expression language")
        if not self._accept("("):
            return Ident(name)
        args = self._list(")")
        if name == "has":
            return _has(args, token.at)
        return Call(name, args, method=False, at=token.at)

    def _list(self, closing: str, *, trailing: bool = False) -> tuple[Syntax, ...]:
        items: list[Syntax] = []
        if self._accept(closing):
            return ()
        while True:
            items.append(self.expression())
            if self._accept(closing):
                return tuple(items)
            self._expect(",")
            if trailing and self._accept(closing):
                return tuple(items)

    def _entries(self) -> tuple[tuple[Syntax, Syntax], ...]:
        entries: list[tuple[Syntax, Syntax]] = []
        while not self._accept("}"):
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
            if not self._accept(","):
                self._expect("}")
                break
        return tuple(entries)


def _combine(operator: str, left: Syntax, right: Syntax) -> Syntax:
    if operator not in ("&&", "||"):
        return Binary(operator, left, right)
    if isinstance(left, Logic) and left.operator == operator:
        return Logic(left.operator, (*left.operands, right))
    return Logic("&&" if operator == "&&" else "||", (left, right))


def _comprehension(name: str, target: Syntax, args: tuple[Syntax, ...], at: int) -> Syntax:
    variable = args[0]
    if not isinstance(variable, Ident):
        raise ExpressionSyntaxError(f"column {at + 1}: the first argument of {name} must be a plain variable name")
    if len(args) == 3 and name != "map":
        raise ExpressionSyntaxError(f"column {at + 1}: {name} takes a variable and one expression")
    guard = args[1] if len(args) == 3 else None
    return Comprehension(name, target, variable.name, args[-1], guard)


def _has(args: tuple[Syntax, ...], at: int) -> Syntax:
    if len(args) != 1 or not isinstance(args[0], Select):
        raise ExpressionSyntaxError(f"column {at + 1}: has() takes one field, such as has(input.customer)")
    return Select(args[0].target, args[0].field, test=True)
