"""Fills in the defaults of a schema."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

from partita.domain.payload import Json

_DEEPEST: Final = 64


def with_defaults(schema: Json, value: Json) -> Json:
    """The document with the schema's defaults filled in; the argument is left as it is.

    Defaults apply through properties, items, ``$ref`` and ``allOf``; a default inside anyOf, oneOf or if is a statement
    about one alternative and is not applied.
    """
    return _filled(schema, schema, value, 0)


def _filled(schema: Json, root: Json, value: Json, depth: int) -> Json:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return value
    reference = schema.get("$ref")
    if isinstance(reference, str):
        value = _filled(_target(root, reference), root, value, depth + 1)
    for part in schema.get("allOf", ()):
        value = _filled(part, root, value, depth + 1)
    if isinstance(value, dict):
        return _filled_object(schema, root, value, depth)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        start = len(schema.get("prefixItems", ()))
        items = schema["items"]
        return [*value[:start], *(_filled(items, root, item, depth + 1) for item in value[start:])]
    return value


def _filled_object(schema: Mapping[str, Json], root: Json, value: dict[str, Json], depth: int) -> Json:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return value
    result = dict(value)
    for name, part in properties.items():
        if name not in result and isinstance(part, dict) and "default" in part:
            default = part["default"]
            result[name] = copy.deepcopy(default) if isinstance(default, list | dict) else default
        if name in result:
            result[name] = _filled(part, root, result[name], depth + 1)
    return result


def _target(root: Json, reference: str) -> Json:
    if reference == "#":
        return root
    value = root
    for part in reference.removeprefix("#/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value.get(key)
    return value
