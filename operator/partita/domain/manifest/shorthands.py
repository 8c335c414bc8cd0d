"""Says how to write what somebody wrote too short.

Invariant: where only one thing can be meant by a value of the wrong kind, the message holds it, ready to be copied.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from partita.domain.manifest import shapes
from partita.domain.manifest.shapes import Shape
from partita.domain.payload import Json, kind_of
from partita.domain.places import shortened

_FROM_TEXT: Final[dict[Shape, str]] = {
    shapes.TASK: "{type: VALUE}",
    shapes.WAIT: "{duration: VALUE}",
    shapes.EVENT: "{name: VALUE}",
    shapes.FOR_EACH: "{items: VALUE}",
    shapes.REPEAT: "{until: VALUE}",
    shapes.FAIL: "{type: VALUE}",
    shapes.WORKFLOW: "{name: VALUE}",
    shapes.UNDO: "{task: {type: VALUE}}",
    shapes.DEFINITION_REF: "{name: VALUE}",
    shapes.CANCEL: "{reason: VALUE}",
}
"""What a text means that stands where an object is expected."""
_FROM_LIST: Final[dict[Shape, str]] = {shapes.FOR_EACH: "{items: […]}", shapes.FINALLY: "{nodes: […]}"}
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*\Z|[0-9]+(ms|[smhd])\Z")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def as_object(name: str, shape: Shape, value: Json) -> str:
    """How to write a value as an object of a shape: ``, such as …``, or nothing."""
    if isinstance(value, str) and value and shape in _FROM_TEXT:
        return _written(name, _FROM_TEXT[shape].replace("VALUE", _scalar(value)))
    if isinstance(value, list) and shape in _FROM_LIST:
        return _written(name, _FROM_LIST[shape])
    return ""


def as_list(name: str, value: Json) -> str:
    """How to write one entry as a list."""
    if isinstance(value, dict):
        return _written(name, "[{…}]")
    return _written(name, f"[{_scalar(value)}]") if isinstance(value, str) and value else ""


def kind_for_text(value: Json) -> str:
    """What a value is where a text is expected; nobody means a boolean there."""
    if not isinstance(value, bool):
        return kind_of(value)
    words, found = ("y, yes and on", "true") if value else ("n, no and off", "false")
    return f"{kind_of(value)}, since YAML reads {words} as {found} (quote it)"


def _written(name: str, value: str) -> str:
    return f", written {name}: {value}"


def _scalar(value: str) -> str:
    """A text as YAML, quoted where that is needed."""
    text = shortened(value)
    plain = _PLAIN.match(text) and text.lower() not in _WORDS
    return text if plain else orjson.dumps(text.encode("utf-8", "replace").decode()).decode()
