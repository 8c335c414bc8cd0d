"""Whether a signal's payload fits the schema of the wait that it is delivered to."""

from __future__ import annotations

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from partita.domain.payload import Json


def violation(schema: Json, payload: Json) -> str:
    """The worst violation as ``path: problem``, or '' if the payload fits."""
    error = best_match(Draft202012Validator(schema).iter_errors(payload))
    if error is None:
        return ""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"payload{path}: {error.message}"
