"""JSON values with ``${…}`` inside, compiled once and rendered often.

Invariant: rendering changes neither the template nor the scope; constant parts are shared between renderings, so a
result must not be changed. A string that is exactly one token keeps the type of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from partita.domain.errors import InvalidError, Problem
from partita.domain.expressions import limits
from partita.domain.expressions.analysis import References, merged
from partita.domain.expressions.errors import ExpressionError, ExpressionSyntaxError
from partita.domain.expressions.frame import Frame, Meter
from partita.domain.expressions.program import Program, compile_program
from partita.domain.expressions.scanner import Token, scan
from partita.domain.expressions.values import Value, a_kind, text
from partita.domain.payload import Json
from partita.domain.places import element, member

_Render = Callable[[Frame], Json]


class Template:
    """A compiled JSON value; ``source`` is the value as written, ``refs`` is what rendering reads."""

    __slots__ = ("_constant", "_render", "constant", "refs", "source")

    def __init__(self, source: Json, refs: References, render: _Render | None, constant: Json) -> None:
        self.source = source
        self.refs = refs
        self.constant = render is None
        """Whether rendering always gives the same."""
        self._render = render
        self._constant = constant

    def render(self, scope: Mapping[str, Json], meter: Meter | None = None) -> Json:
        """The value with every token replaced; the meter counts what that takes. Raises ExpressionError."""
        if self._render is None:
            return self._constant
        frame = Frame(scope)
        if meter is None:
            return self._render(frame)
        try:
            return self._render(frame)
        finally:
            frame.read(meter)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and bool(self.source == other.source)

    def __hash__(self) -> int:
        return hash(repr(self.source))

    def __repr__(self) -> str:
        return f"Template({self.source!r})"


def compile_template(
    value: Json,
    path: str = "",
    *,
    variables: frozenset[str] | None = None,
    limit: int = limits.SOURCE_LENGTH,
    places: list[tuple[str, References]] | None = None,
) -> Template:
    """Compile a JSON value. Raises InvalidError with every problem in it, each with its path below ``path``.

    ``variables`` are the names that exist in this field (None: not checked); ``limit`` is the length of one expression;
    ``places`` is given the path and the references of every expression that compiles, also when others do not.
    """
    compiler = _Compiler(variables, limit)
    render, constant = compiler.value(value, path, 0)
    if places is not None:
        places.extend(compiler.refs)
    if compiler.problems:
        raise InvalidError("expression", tuple(compiler.problems))
    return Template(value, merged(refs for _, refs in compiler.refs), render, constant)


class _Compiler:
    """Collects problems and references while it compiles; a part is ``(render, constant)``, one of them used."""

    def __init__(self, variables: frozenset[str] | None, limit: int) -> None:
        self._variables = variables
        self._limit = limit
        self.problems: list[Problem] = []
        self.refs: list[tuple[str, References]] = []

    def value(self, value: Json, path: str, depth: int) -> tuple[_Render | None, Json]:
        if depth > limits.TEMPLATE_DEPTH:
            self.problems.append(Problem(path, f"is nested more than {limits.TEMPLATE_DEPTH} levels deep"))
            return None, None
        if isinstance(value, str):
            return self._string(value, path)
        if isinstance(value, dict):
            return self._object(value, path, depth)
        if isinstance(value, list):
            return self._array(value, path, depth)
        return None, value

    def _object(self, value: dict[str, Any], path: str, depth: int) -> tuple[_Render | None, Json]:
        for key in value:
            if "${" in key:
                self.problems.append(Problem(member(path, key), "expressions are not evaluated in names of fields"))
        # in the order of the keys, since an API server does not keep the written one and ``from`` must not depend on it
        parts = {key: self.value(value[key], member(path, key), depth + 1) for key in sorted(value)}
        fixed = {key: parts[key][1] for key in value}
        moving = [(key, render) for key, (render, _) in parts.items() if render is not None]
        if not moving:
            return None, fixed

        def render_object(frame: Frame) -> Json:
            result = fixed.copy()
            for key, render in moving:
                result[key] = render(frame)
            return result

        return render_object, None

    def _array(self, value: list[Any], path: str, depth: int) -> tuple[_Render | None, Json]:
        parts = [self.value(item, element(path, index), depth + 1) for index, item in enumerate(value)]
        fixed = [constant for _, constant in parts]
        moving = [(index, render) for index, (render, _) in enumerate(parts) if render is not None]
        if not moving:
            return None, fixed

        def render_array(frame: Frame) -> Json:
            result = fixed.copy()
            for index, render in moving:
                result[index] = render(frame)
            return result

        return render_array, None

    def _string(self, value: str, path: str) -> tuple[_Render | None, Json]:
        if "${" not in value:
            return None, value
        try:
            parts = [part if isinstance(part, str) else self._program(part, path) for part in scan(value)]
        except ExpressionSyntaxError as error:
            self.problems.append(Problem(path, error.message))
            return None, None
        try:
            return _single(parts[0]) if len(parts) == 1 else _interpolation(parts)
        except ExpressionError as error:
            self.problems.append(Problem(path, error.message))
            return None, None

    def _program(self, token: Token, path: str) -> Program:
        try:
            program = compile_program(token.source, self._variables, self._limit)
        except ExpressionSyntaxError as error:
            raise of_expression(token.source, error.message) from error
        self.refs.append((path, program.refs))
        return program


def _single(part: str | Program) -> tuple[_Render | None, Json]:
    if isinstance(part, str):
        return None, part
    if part.constant:
        return None, part.json(Frame({}))
    source, json = part.source, part.json

    def render_token(frame: Frame) -> Json:
        try:
            frame.spend(limits.TOKEN_VISITS)
            value = json(frame)
        except ExpressionError as error:
            raise located(source, error) from error
        if type(value) in (str, dict, list):
            _measure(frame, value)
        return value

    return render_token, None


def of_expression(source: str, message: str) -> ExpressionSyntaxError:
    """The error that says which expression does not compile."""
    if not source:
        return ExpressionSyntaxError(f"${{}} {message}")
    hint = "; expressions are written ${…}, with one brace" if source.startswith("{") and ":" not in source else ""
    return ExpressionSyntaxError(f"expression {source[:80]!r}: {message}{hint}")


def located(source: str, error: ExpressionError) -> ExpressionError:
    """The error with the expression in front of it."""
    return ExpressionError(f"${{{source[:200]}}}: {error.message}")


def _measure(frame: Frame, value: Json) -> None:
    """Count what a field's expressions add up to: a large value that is named a thousand times is refused in time."""
    frame.tokens += 1
    if type(value) is str:
        frame.size += len(value)
    elif frame.tokens > 1:
        try:
            frame.size += len(orjson.dumps(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise ExpressionError(f"results in a value that is not JSON: {error}") from error
    if frame.size > limits.RESULT_LENGTH and frame.tokens > 1:
        raise ExpressionError(f"the expressions of this field make more than {limits.RESULT_LENGTH:,} characters")


def _interpolation(parts: list[str | Program]) -> tuple[_Render | None, Json]:
    if all(isinstance(part, str) or part.constant for part in parts):
        return None, _joined(Frame({}), parts)
    return lambda frame: _joined(frame, parts), None


def _joined(frame: Frame, parts: list[str | Program]) -> str:
    result = "".join([part if isinstance(part, str) else _shown(frame, part) for part in parts])
    frame.text(len(result))
    return result


def _shown(frame: Frame, part: Program) -> str:
    try:
        frame.spend(limits.TOKEN_VISITS)
        shown = _text(part.value(frame))
    except ExpressionError as error:
        raise located(part.source, error) from error
    frame.text(len(shown))
    return shown


def _text(value: Value) -> str:
    shown = text(value)
    if shown is None:
        raise ExpressionError(f"is {a_kind(value)} inside a text; use json.encode() or get() with a default")
    return shown
