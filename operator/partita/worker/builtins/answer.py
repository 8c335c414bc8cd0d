"""What is kept of an HTTP answer.

Invariant: never more than a bound is read, whatever the server says or sends; an answer is not decompressed (none is
asked for), so that a small one stays small. What it repeats of a credential is masked before it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
import orjson

from partita.domain.error_types import OUTPUT_TOO_LARGE
from partita.domain.payload import Json
from partita.domain.record import record
from partita.worker.failures import BuiltinError

INVALID_RESPONSE: Final = "http_invalid_response"
ERROR_BYTES: Final = 16_384
"""Of the body of an answer that was not expected."""
LONGEST_PAUSE_MS: Final = 86_400_000
"""The longest pause that a server may ask for: a day."""
_MOST_HEADERS: Final = 64
_HEADER_BYTES: Final = 8_192
_LEFT_OUT: Final = frozenset(
    [
        *("connection", "keep-alive", "proxy-authenticate", "set-cookie"),
        *("trailer", "transfer-encoding", "upgrade", "www-authenticate"),
    ]
)
_BUSY: Final = frozenset({429, 503})
_CHUNK: Final = 65_536

Mask = Callable[[str], str]


@record
class Answer:
    """An answer as it is recorded."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Lower-case names."""
    body: Json

    def output(self) -> dict[str, Json]:
        """The output of the task."""
        return {"status": self.status, "headers": dict(self.headers), "body": self.body}

    def retry_after_ms(self) -> int | None:
        """The pause that a busy server asks for, if it does."""
        text = self.headers.get("retry-after", "").strip() if self.status in _BUSY else ""
        if not text:
            return None
        if text.isascii() and text.isdigit():
            return min(int(text[:9]) * 1000, LONGEST_PAUSE_MS)
        try:
            then = parsedate_to_datetime(text)
        except ValueError:
            return None
        then = then if then.tzinfo is not None else then.replace(tzinfo=UTC)
        return max(0, min(round((then - datetime.now(UTC)).total_seconds() * 1000), LONGEST_PAUSE_MS))


async def read_answer(response: aiohttp.ClientResponse, *, limit: int, expected: bool, mask: Mask) -> Answer:
    """Read an answer; raises BuiltinError when it is too large or cannot be understood.

    One that was ``expected`` is read whole or not at all; of any other the beginning is enough.
    """
    bound = limit if expected else min(limit, ERROR_BYTES)
    raw, whole = await _read(response, bound)
    if expected and not whole:
        raise BuiltinError(OUTPUT_TOO_LARGE, f"the answer has more than {limit:,} bytes; expected at most so many")
    if encoding := response.headers.get("Content-Encoding", "").strip().lower().replace("identity", ""):
        if expected:
            raise BuiltinError(INVALID_RESPONSE, f"the answer is encoded as {encoding[:80]}; expected identity")
        raw = b""
    text = mask(_decoded(raw, response))
    body = _body(text, response, whole=whole, strict=expected)
    return Answer(response.status, mask(response.reason or "")[:80], _headers(response, mask), body)


async def _read(response: aiohttp.ClientResponse, bound: int) -> tuple[bytes, bool]:
    """At most ``bound`` bytes of the body, and whether that is all of it."""
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_chunked(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > bound:
            return b"".join(parts)[:bound], False
    return b"".join(parts), True


def _decoded(raw: bytes, response: aiohttp.ClientResponse) -> str:
    try:
        return raw.decode(response.charset or "utf-8", "replace")
    except LookupError:
        return raw.decode("utf-8", "replace")


def _body(text: str, response: aiohttp.ClientResponse, *, whole: bool, strict: bool) -> Json:
    kind = response.content_type.lower()
    if not whole or not (kind == "application/json" or kind.endswith("+json")):
        return text
    if not text.strip():
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if strict:
            raise BuiltinError(INVALID_RESPONSE, f"the answer is no JSON, but says {kind}: {error}") from None
        return text


def _headers(response: aiohttp.ClientResponse, mask: Mask) -> dict[str, str]:
    """Headers by lower-case name, as many as fit; those of the connection and cookies are left out."""
    found: dict[str, str] = {}
    left = _HEADER_BYTES
    for name, value in response.headers.items():
        key = name.lower()
        left -= len(key) + len(value)
        if key in _LEFT_OUT or left < 0 or (key not in found and len(found) == _MOST_HEADERS):
            continue
        found[key] = f"{found[key]}, {mask(value)}" if key in found else mask(value)
    return found
