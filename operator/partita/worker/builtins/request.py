"""The input of ``partita.http``, read into a request.

Invariant: a request that exists can be sent as it is: its URL is absolute and without a password, its headers are legal
and none of those that HTTP's framing and our bounds depend on. Whether it *may* be sent is asked elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import orjson
from yarl import URL

from partita.domain.payload import Json, kind_of
from partita.domain.record import record
from partita.worker.builtins.credentials import NAME
from partita.worker.builtins.inputs import Fields

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FIELDS: Final = ("url", "method", "query", "headers", "body", "text", "expect", "credentials", "timeout")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD"})
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*\Z")
_OURS: Final = frozenset(
    [
        *("accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    ]
)
"""Headers that belong to the connection and to the bounds of an answer."""
_LONGEST_URL: Final = 8_192
_MOST_HEADERS: Final = 64
_MOST_EXPECTED: Final = 64
_TEXT: Final = 64 * 1_048_576
"""A text is bounded by the input it is part of."""
AGENT: Final = "partita"


@record(kw_only=True)
class HttpRequest:
    """What to send, and what counts as success."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    expect: frozenset[int]
    """Statuses; empty stands for all of 200 to 299."""
    credentials: str
    """A name; empty for none."""
    timeout_ms: int | None

    def expects(self, status: int) -> bool:
        """Whether a status is success."""
        return status in self.expect if self.expect else 200 <= status <= 299

    def expected(self) -> str:
        """What is success, in words."""
        return " or ".join(map(str, sorted(self.expect))) if self.expect else "2xx"


def read_request(value: Json, idempotency_key: str) -> HttpRequest:
    """Read an input; raises InvalidTaskInputError with all of its problems."""
    fields = Fields(value, FIELDS)
    method = fields.choice("method", METHODS, "GET")
    url = _url(fields)
    body, kind = _body(fields, method)
    headers = {"Accept": "*/*", "User-Agent": AGENT, **kind}
    if method not in _SAFE:
        headers["Idempotency-Key"] = idempotency_key
    request = HttpRequest(
        method=method,
        url=url,
        headers=_merged(headers, _headers(fields)),
        body=body,
        expect=_expect(fields),
        credentials=fields.text("credentials", "the name of credentials of the worker", default="", pattern=NAME)
        if fields.has("credentials")
        else "",
        timeout_ms=fields.milliseconds("timeout"),
    )
    fields.done()
    return request


def shown(url: URL) -> str:
    """A URL for messages: without its query, which may hold what nobody should read."""
    return str(url.with_query(None).with_fragment(None))


def _url(fields: Fields) -> URL:
    text = fields.text("url", "an absolute http or https URL", longest=_LONGEST_URL)
    problem = ""
    try:
        url = URL(text)
        problem = _url_problem(text, url)
    except ValueError:
        url, problem = URL(), "is no URL; expected one such as https://api.example.com/orders"
    if problem and text:
        fields.problem("url", problem)
    if problem:
        return URL()
    return url.with_fragment(None).extend_query(list(_query(fields)))


def _url_problem(text: str, url: URL) -> str:
    if re.search(r"[\x00-\x20\x7f\\]", text):
        return "has a space, a backslash or a control character; expected them percent-encoded"
    if url.scheme not in {"http", "https"} or not url.raw_host:
        return "is no absolute http or https URL; expected one such as https://api.example.com/orders"
    if url.raw_user is not None or url.raw_password is not None:
        return "holds a user or a password, which would be recorded; expected credentials: NAME"
    return ""


def _query(fields: Fields) -> Iterator[tuple[str, str]]:
    for name, value in fields.object("query", "an object of texts, numbers and booleans, or lists of them").items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict | list):
                fields.problem(f"query.{name}", f"is {kind_of(one)}; expected a text, a number or a boolean")
            elif one is not None:
                yield name, _scalar(one)


def _headers(fields: Fields) -> dict[str, str]:
    given = fields.object("headers", "an object of texts")
    if len(given) > _MOST_HEADERS:
        fields.problem("headers", f"has {len(given):,} entries; expected at most {_MOST_HEADERS}")
    found: dict[str, str] = {}
    for name, value in list(given.items())[:_MOST_HEADERS]:
        problem = _header_problem(name, value)
        if problem:
            fields.problem(f"headers.{name[:80]}", problem)
        elif value is not None:
            found[name] = _scalar(value).strip()
    names = [name.lower() for name in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        fields.problem(f"headers.{name}", "is given twice, in different letters; expected it once")
    return found


def _header_problem(name: str, value: Json) -> str:
    if not _HEADER.match(name):
        return "is no header; expected letters, digits and hyphens"
    if name.lower() in _OURS:
        return "is set by the worker; expected another header"
    if isinstance(value, dict | list):
        return f"is {kind_of(value)}; expected a text, a number or a boolean"
    if value is not None and not _VALUE.match(_scalar(value)):
        return "has a character that a header cannot hold; expected printable ASCII"
    return ""


def _body(fields: Fields, method: str) -> tuple[bytes | None, dict[str, str]]:
    """The body and the header that says its type."""
    if not fields.has("body") and not fields.has("text"):
        return None, {}
    if fields.has("body") and fields.has("text"):
        fields.problem("text", "stands beside body; expected one of them")
    if method in _WITHOUT_BODY:
        given = "body" if fields.has("body") else "text"
        fields.problem(given, f"does not go with {method}; expected POST, PUT, PATCH or DELETE")
    if fields.has("text"):
        return fields.text("text", "a text", longest=_TEXT).encode(), {"Content-Type": "text/plain; charset=utf-8"}
    return orjson.dumps(fields.value("body")), {"Content-Type": "application/json"}


def _expect(fields: Fields) -> frozenset[int]:
    if not fields.has("expect"):
        return frozenset()
    given = fields.value("expect")
    codes = given if isinstance(given, list) else [given]
    good = [code for code in codes if isinstance(code, int) and not isinstance(code, bool) and 200 <= code <= 599]
    if not 0 < len(codes) <= _MOST_EXPECTED or len(good) < len(codes):
        fields.problem("expect", f"is no list of statuses; expected 1 to {_MOST_EXPECTED} numbers from 200 to 599")
    return frozenset(good)


def _merged(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Headers of the input win over ours, whatever letters they are written in."""
    names = {name.lower() for name in given}
    return {**{name: value for name, value in ours.items() if name.lower() not in names}, **given}


def _scalar(value: Json) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
