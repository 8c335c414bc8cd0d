"""Whether a connection URL can be understood at all, before anything is tried with it.

Invariant: what is said about a URL never repeats any of it, since it may hold a password. Trade-off: only what can
never work is found here; a host that does not exist is found by connecting.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlsplit

EXPECTED: Final = "expected postgresql://user:password@host:5432/database"
_SCHEMES: Final = frozenset({"postgresql", "postgres"})
_SSL_MODES: Final = frozenset({"disable", "allow", "prefer", "require", "verify-ca", "verify-full"})


def url_problem(url: str) -> str:
    """What is wrong with a URL and what was expected; empty if nothing is."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"has brackets that do not fit; {EXPECTED}"
    if parts.scheme not in _SCHEMES or not url.startswith(f"{parts.scheme}://"):
        return f"is no URL of PostgreSQL; {EXPECTED}"
    if any(character.isspace() or not character.isprintable() for character in url):
        return f"holds blanks or control characters; {EXPECTED}"
    options = dict(parse_qsl(parts.query))
    ports = [_port(host) for host in parts.netloc.rpartition("@")[2].split(",")]
    if not all(map(_is_port, [*ports, *options.get("port", "").split(",")])):
        return f"has a port that is no number from 1 to 65535; {EXPECTED}"
    if options.get("sslmode", "prefer") not in _SSL_MODES:
        return f"has an unknown sslmode; expected one of {', '.join(sorted(_SSL_MODES))}"
    return ""


def _port(host: str) -> str:
    """The port behind a host, which may be an IPv6 address in brackets; empty if there is none."""
    return host.rpartition("]")[2].rpartition(":")[2] if ":" in host.rpartition("]")[2] else ""


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65_535)
