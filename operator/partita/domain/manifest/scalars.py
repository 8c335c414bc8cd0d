"""What a plain YAML scalar means to kubectl.

Invariant: the rules are those of the YAML 1.1 library that kubectl uses, followed by its conversion to JSON: ``y`` and
``on`` are true, ``1e3`` and ``1.0`` are integers, ``017`` is 15, ``1:30`` and dates are texts.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Final

from partita.domain.payload import Json

_WORDS: Final[dict[str, Json]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
BOOLEAN_WORDS: Final = ("y", "n", "yes", "no", "on", "off")
"""Words that are not ``true`` or ``false`` and that YAML takes for these, in small letters."""
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_BASES: Final = {"x": 16, "b": 2, "o": 8}
_INT64: Final = 2**63


def plain_scalar(text: str) -> Json:
    """The value of an unquoted scalar. NaN and infinities are left as floats, for the caller to refuse."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    integer = _INTEGER.match(digits)
    if integer is not None and text[0] != ".":
        return _integer(integer[1], integer[2], digits)
    if _FLOAT.match(digits) and math.isfinite(float(digits)):
        return json_number(float(digits))
    return text


def _integer(sign: str, digits: str, whole: str) -> Json:
    lower = digits.lower()
    base = _BASES.get(lower[1:2], 8 if len(digits) > 1 and digits[0] == "0" else 10)
    try:
        value = int(lower.removeprefix("0" + lower[1:2]) if lower[1:2] in _BASES else digits, base)
    except ValueError:
        return whole
    value = -value if sign == "-" else value
    if -_INT64 <= value < _INT64:
        return value
    if 0 <= value < 2 * _INT64 and sign != "+":
        return float(value)
    return json_number(float(whole)) if _FLOAT.match(whole) else whole


def json_number(value: float) -> Json:
    """A float as JSON carries it: without decimals it is an integer."""
    if math.isfinite(value) and value.is_integer() and -_INT64 <= value < _INT64:
        return int(Decimal(repr(value)))  # the shortest digits that mean this double, as they are written to JSON
    return value


def key_text(value: Json) -> str | None:
    """A mapping's key as JSON has it; None for what cannot be a key."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _short(value)
    return None


def _short(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    single = struct.unpack("f", struct.pack("f", value))[0] if abs(value) < 3e38 else value
    for digits in range(1, 18):
        text = f"{single:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", single):
            return text
    return repr(value)
