"""Sends requests to where they may go.

Invariant: the addresses that are judged are the ones that are connected to, since the judge is the resolver itself and
nothing is looked up twice; literals are judged before each request. A redirect never leaves scheme, host and port, and
so neither does a credential. No proxy, cookie or ``.netrc`` is used. Trade-off: connections are kept for reuse, so that
a name whose address changes is noticed only when they are closed.
"""

from __future__ import annotations

import socket
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from partita.settings import WorkerHttpSettings
from partita.targets import Targets, is_loopback, is_numeric
from partita.worker.builtins.answer import Answer, read_answer
from partita.worker.builtins.credentials import Credential
from partita.worker.builtins.request import HttpRequest

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_KEEP_ALIVE: Final = 15.0
_BODY_HEADERS: Final = frozenset({"content-type", "idempotency-key"})


class ForbiddenTargetError(Exception):
    """The request would go to an address that is neither public nor allowed."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} is not a public address and not allowed; expected it in PARTITA_WORKER_HTTP_ALLOWED_TARGETS"
        )


class JudgingResolver(AbstractResolver):
    """Looks names up and keeps the addresses that may be connected to."""

    def __init__(self, targets: Targets, resolver: AbstractResolver) -> None:
        self._targets = targets
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Allowed addresses of a name; raises ForbiddenTargetError when there are only others."""
        found = await self._resolver.resolve(host, port, family)
        if is_loopback(host):
            found = [one for one in found if is_loopback(one["host"])]
        if not self._targets.allows_name(host):
            found = [one for one in found if self._targets.allows_address(one["host"])]
        if not found:
            raise ForbiddenTargetError(host)
        return found

    async def close(self) -> None:
        """Release what the resolver holds."""
        await self._resolver.close()


class HttpClient:
    """The connections of one worker."""

    def __init__(self, settings: WorkerHttpSettings, *, resolver: AbstractResolver | None = None) -> None:
        self._settings = settings
        self._targets = Targets.of(settings.allowed_targets)
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def exchange(self, request: HttpRequest, credential: Credential | None, limit: int) -> Answer:
        """Send a request, and follow its redirects; ``limit``: bytes of an answer.

        Raises ForbiddenTargetError, CredentialsRefusedError, BuiltinError, and what aiohttp raises.
        """
        session = self._opened()
        method, url, body, headers = request.method, request.url, request.body, dict(request.headers)
        headers["Accept-Encoding"] = "identity"
        if credential is not None:
            credential.check(url.scheme, url.raw_host or "")
            headers = {name: value for name, value in headers.items() if name.lower() != credential.header.lower()}
            headers[credential.header] = credential.value
        left = self._settings.redirects
        while True:
            self._check(url)
            async with session.request(method, url, headers=headers, data=body, allow_redirects=False) as response:
                following = _following(request, response) if left else None
                if following is None:
                    mask = credential.mask if credential is not None else str
                    expected = request.expects(response.status)
                    return await read_answer(response, limit=limit, expected=expected, mask=mask)
            left -= 1
            url = following
            if _becomes_get(method, response.status):
                method, body = "GET", None
                headers = {name: value for name, value in headers.items() if name.lower() not in _BODY_HEADERS}

    def _check(self, url: URL) -> None:
        """Judge a literal address; names are judged when they are looked up."""
        host = url.raw_host or ""
        if is_numeric(host) and not self._targets.allows_address(host):
            raise ForbiddenTargetError(host)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            judge = JudgingResolver(self._targets, self._resolver or aiohttp.ThreadedResolver())
            connector = aiohttp.TCPConnector(
                resolver=judge,
                use_dns_cache=False,
                limit=0,  # every request is a task in a slot: these are bounded
                keepalive_timeout=_KEEP_ALIVE,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=self._settings.connect_timeout_ms / 1000),
            )
        return self._session


def _following(request: HttpRequest, response: aiohttp.ClientResponse) -> URL | None:
    """Where a redirect leads, if it may be followed; one that was expected is an answer."""
    location = response.headers.get("Location", "")
    if response.status not in _REDIRECTS or not location or request.expects(response.status):
        return None
    try:
        target = response.url.join(URL(location)).with_fragment(None)
        same = target.origin() == request.url.origin() and target.raw_user is None
    except ValueError:
        return None
    return target if same else None


def _becomes_get(method: str, status: int) -> bool:
    """Whether a redirect turns a request into a plain look at another page, as browsers do."""
    return (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST")
