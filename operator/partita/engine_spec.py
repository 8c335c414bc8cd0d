"""The spec that a new WorkflowEngine begins with, as a setting holds it: a JSON object.

Invariant: what is accepted here is accepted by the API server, so that a mistake is said at the start of a process and
not when somebody deletes the object. Trade-off: the bounds of the CRD stand here once more; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

TTL_MOST: Final = 3_153_600_000
"""Seconds, as in the CRD. Its reader in the domain would load the whole parser of manifests for this number."""
LIMIT_MOST: Final = 100_000


def engine_spec(text: str) -> dict[str, Any]:
    """The spec of a setting that ``engine_spec_problem`` finds no fault with."""
    return dict(orjson.loads(text)) if text else {}


def engine_spec_problem(text: str) -> str:
    """What is wrong with the setting; empty when nothing is."""
    try:
        spec = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f'is no JSON ({error}); expected an object such as {{"ttlSecondsAfterFinished": 3600}}'
    if not isinstance(spec, dict):
        return 'is no object; expected one such as {"ttlSecondsAfterFinished": 3600}'
    for key, value in spec.items():
        if key not in _FIELDS:
            return f"has the unknown field {key}; expected one of {', '.join(_FIELDS)}"
        fits, expected = _FIELDS[key]
        if not fits(value):
            return f"{key} does not fit; expected {expected}"
    return ""


def _whole(value: object, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _limits(value: object) -> bool:
    if not isinstance(value, dict) or len(value) > 1000:
        return False
    return all(key.startswith("shared/") and len(key) <= 1024 and _whole(n, 1, LIMIT_MOST) for key, n in value.items())


_FIELDS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "paused": (lambda value: isinstance(value, bool), "true or false"),
    "ttlSecondsAfterFinished": (lambda value: _whole(value, 0, TTL_MOST), f"a whole number from 0 to {TTL_MOST}"),
    "concurrencyLimits": (_limits, f"keys that begin with shared/ with whole numbers from 1 to {LIMIT_MOST}"),
    "jobDefaults": (lambda value: isinstance(value, dict), "an object"),
}
