"""Checks documents against schemas.

Invariant: bounded, whatever schema and document are: nothing is fetched, patterns run in linear time, ``uniqueItems``
is linear, and the keywords applied are counted. A schema given here has no problems (``schema_problems``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from partita.domain.errors import Problem
from partita.domain.patterns import compile_pattern
from partita.domain.payload import Json

STEPS: Final = 200_000
"""Keywords applied to one document; about half a second at most."""
MOST_PROBLEMS: Final = 50
"""Problems reported of one document."""
ENDLESS: Final = "the schema refers to itself, or the document is nested too deeply"
_steps: ContextVar[list[int]] = ContextVar("_steps")


class _TooMuchError(Exception):
    """The document and the schema together are more work than one check may be."""


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def counting(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        left = _steps.get()
        left[0] -= 1
        if left[0] < 0:
            raise _TooMuchError
        return check(validator, value, instance, schema)

    return counting


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not compile_pattern(pattern)(instance):
        yield ValidationError(f"{instance[:80]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        matches = compile_pattern(pattern)
        for key, value in instance.items():
            if matches(key):
                yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    matchers = [compile_pattern(pattern) for pattern in schema.get("patternProperties", {})]
    for key, value in instance.items():
        if key in known or any(matches(key) for matches in matchers):
            continue
        if subschema is False:
            yield ValidationError(f"unknown field {key!r}; expected one of {', '.join(sorted(known)) or 'none'}")
        else:
            yield from validator.descend(value, subschema, path=key)


def _unique(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        frozen = {_frozen(item) for item in instance}
        if len(frozen) != len(instance):
            yield ValidationError("the items are not unique")


def _frozen(value: Json) -> object:
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return (type(value) is bool, value)


_OWN: Final = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "uniqueItems": _unique,
}
_Validator: Any = extend(  # type: ignore[no-untyped-call]  # the library types the class, not this function
    Draft202012Validator,
    {name: _counted(check) for name, check in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
)


def violations(schema: Json, value: Json, path: str = "") -> tuple[Problem, ...]:
    """Where a document breaks a schema that has no problems; all at once, at most fifty, with paths below ``path``."""
    token = _steps.set([STEPS])
    try:
        found: list[Problem] = []
        for error in _Validator(schema, registry=Registry()).iter_errors(value):
            found.append(Problem(joined(path, error.absolute_path), describe(error)))
            if len(found) >= MOST_PROBLEMS:
                break
        return tuple(found)
    except _TooMuchError:
        return (Problem(path, f"takes more than {STEPS:,} steps to check; expected a smaller document"),)
    except RecursionError:
        return (Problem(path, ENDLESS),)
    except (Unresolvable, ValueError) as error:
        return (Problem(path, f"the schema cannot be applied: {error}"),)
    finally:
        _steps.reset(token)


def joined(path: str, parts: Iterable[object]) -> str:
    """A path with the keys and indexes of a value below it."""
    text = path
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def describe(error: ValidationError) -> str:
    """What is wrong, in one bounded sentence."""
    wanted: Any = error.validator_value
    if error.validator == "required":
        return f"field {error.message.split(' is a required')[0]} is missing; expected {', '.join(wanted)}"
    if error.validator == "type":
        names = wanted if isinstance(wanted, str) else " or ".join(wanted)
        return f"{_brief(error.instance)} is not of type {names}"
    return error.message if len(error.message) <= 300 else f"{error.message[:297]}..."


def _brief(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
