"""Fills in the defaults of a schema.

Invariant: every part that is applied and every value that is copied is paid for, from a budget as large as that of a
check, and what is filled in never exceeds the size that the result may have; a schema whose defaults double at each
level stops there.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

import orjson

from partita.domain.payload import Json
from partita.domain.schema.references import target
from partita.domain.schema.walk import ENDLESS, Budget, TooMuchError

_NOTHING: Final[Mapping[str, Json]] = {}


def with_defaults(schema: Json, value: Json, *, budget: Budget, most_bytes: int) -> Json:
    """The document with the schema's defaults filled in; the argument is left as it is.

    Defaults apply through properties, items, ``$ref`` and ``allOf``; a default inside anyOf, oneOf or if is a statement
    about one alternative and is not applied. Raises TooMuchError, whose text says what is too much: steps, or the bytes
    that are filled in.
    """
    try:
        return _Filling(schema, budget, most_bytes).filled(schema, value)
    except RecursionError as error:
        raise TooMuchError(ENDLESS) from error


class _Filling:
    """One document being filled in."""

    def __init__(self, root: Json, budget: Budget, most_bytes: int) -> None:
        self._root = root
        self._budget = budget
        self._most = self._left = most_bytes
        self._sizes: dict[int, int] = {}

    def filled(self, schema: Json, value: Json) -> Json:
        """The value with the defaults of one part."""
        if not isinstance(schema, dict):
            return value
        self._budget.spend(1)
        if "$ref" in schema:
            value = self.filled(target(self._root, schema["$ref"]), value)
        for part in schema.get("allOf", ()):
            value = self.filled(part, value)
        if isinstance(value, dict):
            return self._object(schema.get("properties", _NOTHING), value)
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            self._budget.spend(len(value))
            start, items = len(schema.get("prefixItems", ())), schema["items"]
            return [*value[:start], *[self.filled(items, item) for item in value[start:]]]
        return value

    def _object(self, properties: Mapping[str, Json], value: dict[str, Json]) -> Json:
        if not properties:
            return value
        self._budget.spend(len(properties) + len(value))
        result = dict(value)
        for name, part in properties.items():
            if name not in result and isinstance(part, dict) and "default" in part:
                result[name] = self._default(part)
            if name in result:
                result[name] = self.filled(part, result[name])
        return result

    def _default(self, part: Mapping[str, Json]) -> Json:
        default = part["default"]
        size = self._sizes.get(id(part))
        if size is None:
            size = self._sizes[id(part)] = len(orjson.dumps(default))
        self._left -= size
        if self._left < 0:
            raise TooMuchError(f"has more than {self._most:,} bytes with its defaults; expected a smaller document")
        if not isinstance(default, list | dict):
            return default
        self._budget.spend(size >> 2)
        return copy.deepcopy(default)
