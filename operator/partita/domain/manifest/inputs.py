"""Makes a run's input ready: defaults first, then the schema, then the limit."""

from __future__ import annotations

from collections.abc import Mapping

from partita.domain.errors import InvalidInputError, Problem
from partita.domain.manifest import limits
from partita.domain.manifest.text import storable_text
from partita.domain.model import Definition
from partita.domain.payload import Json, Payload, kind_of
from partita.domain.schema import Budget, TooMuchError, violations, with_defaults

_PATH = "spec.input"


def prepare_input(
    definition: Definition, value: Json | Mapping[str, Json] | None, *, most_bytes: int = limits.INPUT_BYTES
) -> Payload:
    """The input as it is stored. Raises InvalidInputError with every violation and its path.

    An absent input is an empty object. The argument is left as it is.
    """
    given: Json = {} if value is None else value
    if not isinstance(given, dict):
        raise _invalid(definition, [Problem(_PATH, f"is {kind_of(given)}; expected an object")])
    schema = definition.input_schema
    budget = Budget()
    try:
        complete = given if schema is None else with_defaults(schema, given, budget=budget, most_bytes=most_bytes)
    except TooMuchError as error:
        raise _invalid(definition, [Problem(_PATH, str(error))]) from error
    text, problems = storable_text(complete, _PATH, most_bytes)
    if not problems and schema is not None:
        problems = [*violations(schema, complete, _PATH, budget=budget)]
    if problems:
        raise _invalid(definition, problems)
    return Payload(text, complete)


def _invalid(definition: Definition, problems: list[Problem]) -> InvalidInputError:
    hint = f"kubectl get wfd {definition.name} -n {definition.namespace} -o yaml" if definition.name else ""
    return InvalidInputError("input", tuple(problems), hint=hint)
