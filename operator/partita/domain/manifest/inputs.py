"""Makes a run's input ready: defaults first, then the schema, then the limit."""

from __future__ import annotations

from collections.abc import Mapping

from partita.domain.errors import InvalidInputError, Problem
from partita.domain.manifest import limits
from partita.domain.manifest.reader import kind_of
from partita.domain.manifest.text import text_problems
from partita.domain.model import Definition
from partita.domain.payload import Json, Payload
from partita.domain.schema import violations, with_defaults

_PATH = "spec.input"


def prepare_input(
    definition: Definition, value: Json | Mapping[str, Json] | None, *, most_bytes: int = limits.INPUT_BYTES
) -> Payload:
    """The input as it is stored. Raises InvalidInputError with every violation and its path.

    An absent input is an empty object. The argument is left as it is.
    """
    given: Json = {} if value is None else value
    problems: tuple[Problem, ...]
    if not isinstance(given, dict):
        problems = (Problem(_PATH, f"is {kind_of(given)}; expected an object"),)
    else:
        problems = tuple(text_problems(given, _PATH, most_bytes))
    schema = definition.input_schema
    if not problems and schema is not None:
        given = with_defaults(schema, given)
        problems = violations(schema, given, _PATH) or tuple(text_problems(given, _PATH, most_bytes))
    if problems:
        hint = f"kubectl get wfd {definition.name} -n {definition.namespace} -o yaml" if definition.name else ""
        raise InvalidInputError("input", problems, hint=hint)
    return Payload.of(given)
