"""What ``$ref`` leads to.

Invariant: following a reference costs no more than the reference is long, however many parts the schema has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from partita.domain.payload import Json
from partita.domain.schema.keywords import NAMED, SCHEMA, SCHEMAS


def target(root: Json, reference: str) -> Json:
    """The part that a reference of a checked schema leads to."""
    value = root
    for key in _steps(reference):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def resolves(root: Json, reference: str) -> bool:
    """Whether a reference leads to a schema that was checked: through keywords that hold schemas only."""
    value = root
    steps = _steps(reference)
    for keyword in steps:
        if not isinstance(value, dict) or keyword not in value:
            return False
        value = _part(keyword, value[keyword], steps)
    return isinstance(value, dict | bool)


def _part(keyword: str, value: Json, steps: Iterator[str]) -> Json:
    """The schema inside a keyword; a keyword that holds several takes one more step. None if there is none."""
    if keyword in SCHEMA:
        return value
    step = next(steps, None)
    if step is None:
        return None
    if keyword in NAMED and isinstance(value, Mapping):
        return value.get(step)
    if keyword in SCHEMAS and isinstance(value, list) and step.isdecimal() and step.isascii():
        index = int(step[:9])
        return value[index] if str(index) == step and index < len(value) else None
    return None


def _steps(reference: str) -> Iterator[str]:
    parts = reference[2:].split("/") if len(reference) > 1 else ()
    return iter([part.replace("~1", "/").replace("~0", "~") for part in parts])
