"""One compiled expression.

Invariant: whatever the expression and the data are, evaluating ends with a value or an ExpressionError. An expression
that reads nothing is evaluated once, when it is compiled; if that fails, it does not compile.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from partita.domain.expressions import limits
from partita.domain.expressions.analysis import References, analyse
from partita.domain.expressions.errors import BudgetError, ExpressionError, ExpressionSyntaxError
from partita.domain.expressions.evaluator import Evaluate, compile_tree
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.parser import KEYWORDS, RESERVED, parse
from partita.domain.expressions.paths import path_of
from partita.domain.expressions.syntax import Ident, Select, Syntax
from partita.domain.expressions.values import Value, plain, rfc3339

_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


class Program:
    """A compiled expression; ``constant`` says that ``json`` always gives the same."""

    __slots__ = ("_evaluate", "_path", "constant", "refs", "source")

    def __init__(self, source: str, tree: Syntax, refs: References) -> None:
        self.source = source
        self.refs = refs
        self._evaluate: Evaluate = compile_tree(tree)
        path = path_of(tree)
        self._path = path is not None and path[0] != "run"
        """Whether the result is part of what is JSON already; ``run`` holds times."""
        self.constant = not refs
        if self.constant:
            self._fold()

    def _fold(self) -> None:
        try:
            value = self.value(Frame({}, limits.FOLDING_VISITS))
        except BudgetError:
            self.constant = False  # costly: evaluated when it is needed, within the field's budget
            return
        except ExpressionError as error:
            raise ExpressionSyntaxError(str(error)) from error
        self._evaluate = lambda _: value

    def value(self, frame: Frame) -> Value:
        """The result as a value of the expression language. Raises ExpressionError."""
        try:
            return self._evaluate(frame)
        except ExpressionError:
            raise
        except RecursionError as error:
            raise ExpressionError("works on data that is nested too deeply") from error
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise ExpressionError(f"cannot be evaluated: {error}") from error

    def json(self, frame: Frame) -> Value:
        """The result as a JSON value. Raises ExpressionError."""
        value = self.value(frame)
        if self._path:  # a part of the scope, which is JSON but for ``now``
            return rfc3339(value) if type(value) is datetime else value
        try:
            return plain(frame, value)
        except RecursionError as error:
            raise ExpressionError("makes data that is nested too deeply") from error


@lru_cache(maxsize=4096)
def compile_program(source: str, variables: frozenset[str] | None, limit: int = limits.SOURCE_LENGTH) -> Program:
    """Compile one expression. Raises ExpressionSyntaxError. Programs never change, so equal sources share one."""
    if len(source) > limit:
        raise ExpressionSyntaxError(f"has {len(source):,} characters; expected at most {limit:,}")
    if not source:
        raise ExpressionSyntaxError("is empty; expected a value, such as ${input.customer}")
    tree = _plain_path(source) or parse(source)
    return Program(source, tree, analyse(tree, variables))


def _plain_path(source: str) -> Syntax | None:
    """The tree of a plain path, which most expressions are, without the grammar."""
    if not _PATH.match(source):
        return None
    root, *fields = source.split(".")
    if root in RESERVED or len(fields) >= limits.DEPTH or not KEYWORDS.isdisjoint(fields):
        return None
    tree: Syntax = Ident(root)
    for field in fields:
        tree = Select(tree, field)
    return tree
