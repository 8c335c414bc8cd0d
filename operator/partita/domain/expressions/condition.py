"""Conditions and durations: expressions with one kind of result.

Invariant: a condition is exactly one token and its value a boolean, never something that merely looks true.
"""

from __future__ import annotations

from collections.abc import Mapping

from partita.domain.durations import parse_duration
from partita.domain.errors import InvalidError, Problem
from partita.domain.expressions import limits
from partita.domain.expressions.analysis import References
from partita.domain.expressions.errors import ExpressionError, ExpressionSyntaxError
from partita.domain.expressions.frame import Frame, Meter
from partita.domain.expressions.program import Program, compile_program
from partita.domain.expressions.scanner import Token, scan
from partita.domain.expressions.template import Template, compile_template, located, of_expression
from partita.domain.expressions.values import Value, kind
from partita.domain.payload import Json


class Condition:
    """A compiled condition."""

    __slots__ = ("_program", "refs", "source")

    def __init__(self, source: str, program: Program) -> None:
        self.source = source
        self.refs: References = program.refs
        self._program = program

    def test(self, scope: Mapping[str, Json], meter: Meter | None = None, visits: int = limits.VISITS) -> bool:
        """Whether it holds; the meter counts what that takes. Raises ExpressionError, also for what is no boolean.

        ``visits`` is what it may take: less than a field's whole budget where several conditions share one.
        """
        frame = Frame(scope, visits)
        try:
            return _boolean(self._program.value(frame))
        except ExpressionError as error:
            raise located(self._program.source, error) from error
        finally:
            if meter is not None:
                frame.read(meter)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"Condition({self.source!r})"


def _boolean(value: Value) -> bool:
    if type(value) is bool:
        return value
    raise ExpressionError(f"a condition must be true or false, found {kind(value)}; compare it, such as … == 'x'")


def compile_condition(source: str, path: str = "", *, variables: frozenset[str] | None = None) -> Condition:
    """Compile a condition. Raises InvalidError with the problem."""
    try:
        return Condition(source, _single(source, variables))
    except ExpressionSyntaxError as error:
        raise InvalidError("condition", (Problem(path, error.message),)) from error


def _single(source: str, variables: frozenset[str] | None) -> Program:
    parts = scan(source.strip())
    if len(parts) != 1 or not isinstance(parts[0], Token):
        raise ExpressionSyntaxError(f"a condition must be exactly one ${{…}}, found {source[:80]!r}")
    try:
        program = compile_program(parts[0].source, variables)
        if program.constant:
            _boolean(program.value(Frame({})))
    except (ExpressionSyntaxError, ExpressionError) as error:
        raise of_expression(parts[0].source, error.message) from error
    return program


class DurationTemplate:
    """A duration, written out or as an expression."""

    __slots__ = ("_constant", "_template", "refs", "source")

    def __init__(self, source: str, constant: int | None, template: Template | None, refs: References) -> None:
        self.source = source
        self.refs = refs
        self._constant = constant
        self._template = template

    @classmethod
    def of(cls, milliseconds: int) -> DurationTemplate:
        """A fixed duration."""
        return cls(f"{milliseconds}ms", milliseconds, None, References())

    @property
    def constant(self) -> int | None:
        """Milliseconds, if the duration reads nothing."""
        return self._constant

    def millis(self, scope: Mapping[str, Json], meter: Meter | None = None) -> int:
        """Milliseconds; the meter counts what that takes. Raises ExpressionError for a result that is no duration."""
        if self._constant is not None or self._template is None:
            return self._constant or 0
        return _milliseconds(self.source, self._template.render(scope, meter))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DurationTemplate) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"DurationTemplate({self.source!r})"


def _milliseconds(source: str, value: Json) -> int:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise ExpressionError(f"{source[:80]}: {error}") from error
    raise ExpressionError(f"{source[:80]}: expected a duration such as 10m, found {kind(value)}")


def compile_duration(source: str, path: str = "", *, variables: frozenset[str] | None = None) -> DurationTemplate:
    """Compile a duration such as ``10m`` or ``${input.delay}``. Raises InvalidError with the problem."""
    template = compile_template(source, path, variables=variables, limit=limits.SHORT_SOURCE_LENGTH)
    if not template.constant:
        return DurationTemplate(source, None, template, template.refs)
    try:
        return DurationTemplate(source, _milliseconds(source, template.render({})), None, template.refs)
    except ExpressionError as error:
        text = error.message.removeprefix(f"{source[:80]}: ")
        raise InvalidError("duration", (Problem(path, text),)) from error
