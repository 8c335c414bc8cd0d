"""A small HTTP client of the Kubernetes API: JSON in, JSON out, one attempt a call.

Purpose: what kopf does not do for us (the lease, statuses in parallel, complete lists) on one pooled session.
Invariant: every failure leaves as an error of our tree, and no call is repeated here, since only the caller knows
whether its request may be sent twice. Trade-off: no typed models; objects are plain dicts.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
import kopf
import orjson

from partita.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PartitaError,
    Problem,
    UnavailableError,
)
from partita.domain.payload import Json

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_NOT_TYPED = "failed to create typed patch object"
"""What an API server answers, with status 500, to an apply whose body does not fit the kind."""
LARGE = 1024 * 1024
"""Bytes above which a body is sent in pieces."""
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class ContinueExpiredError(UnavailableError):
    """What a list or a watch goes on from is forgotten (410); the list must begin again."""

    reason = "Expired"


class KubeClient:
    """Calls to one API server with the credentials that ``connect`` returns (called again after a 401)."""

    def __init__(self, connect: Callable[[], kopf.ConnectionInfo], *, connections: int = 32, seconds: float = 10.0):
        self._connect = connect
        self._connections = connections
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._session: aiohttp.ClientSession | None = None
        self._server = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the pooled connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def get(self, path: str, *, seconds: float | None = None) -> dict[str, Any]:
        """One object. Raises NotFoundError."""
        return await self._call("GET", path, seconds=seconds)

    async def create(
        self, path: str, body: Json, *, seconds: float | None = None, dry_run: bool = False
    ) -> dict[str, Any]:
        """A new object below a collection's path. Raises ConflictError when it exists."""
        return await self._call("POST", path, body, seconds=seconds, params=_dry(dry_run))

    async def replace(self, path: str, body: Json, *, seconds: float | None = None) -> dict[str, Any]:
        """The whole object, guarded by its ``metadata.resourceVersion``. Raises ConflictError."""
        return await self._call("PUT", path, body, seconds=seconds)

    async def patch(self, path: str, body: Json, kind: str = MERGE_PATCH) -> dict[str, Any]:
        """Change an object. A ``metadata.resourceVersion`` or ``uid`` in a merge patch is a precondition."""
        return await self._call("PATCH", path, body, kind)

    async def apply(self, path: str, body: Json, manager: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply: create the object or take over the given fields."""
        params = {"fieldManager": manager, "force": "true", **_dry(dry_run)}
        return await self._call("PATCH", path, body, APPLY_PATCH, params=params)

    async def delete(self, path: str, *, uid: str) -> None:
        """Delete an object if it is still the one with this uid; one that is gone is no error."""
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._call("DELETE", path, body)
        except NotFoundError:
            return

    async def pages(self, path: str, *, fields: str = "", page: int = 500) -> AsyncIterator[list[dict[str, Any]]]:
        """Every object below a path, page by page; ``fields`` is a field selector."""
        params = {"limit": str(page), **({"fieldSelector": fields} if fields else {})}
        while True:
            answer = await self._call("GET", path, params=params)
            yield answer.get("items") or []
            token = (answer.get("metadata") or {}).get("continue")
            if not token:
                return
            params["continue"] = token

    async def metadata(self, path: str, page: int = 500) -> AsyncIterator[list[dict[str, Any]]]:
        """Metadata of every object below a path, page by page; only one that ends without an error is complete."""
        params = {"limit": str(page)}
        while True:
            answer = await self._call("GET", path, params=params, accept=METADATA_LIST)
            yield [item["metadata"] for item in answer.get("items") or []]
            token = (answer.get("metadata") or {}).get("continue")
            if not token:
                return
            params["continue"] = token

    async def _call(
        self,
        method: str,
        path: str,
        body: Json = None,
        kind: str = "application/json",
        *,
        params: Mapping[str, str] | None = None,
        accept: str = "application/json",
        seconds: float | None = None,
    ) -> dict[str, Any]:
        headers = {"Accept": accept, "Content-Type": kind}
        data = None if body is None else orjson.dumps(body)
        timeout = self._timeout if seconds is None else aiohttp.ClientTimeout(total=seconds)
        code, answer = await self._send(method, path, data, headers, params, timeout)
        if code == 401:
            await self.close()
            code, answer = await self._send(method, path, data, headers, params, timeout)
        if code >= 400:
            raise error_of(method, path, code, answer)
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  # aiohttp's own limit, which also covers its pool
    ) -> tuple[int, dict[str, Any]]:
        session = self._open()
        content = io.BytesIO(data) if data is not None and len(data) > LARGE else data
        try:
            async with session.request(
                method, self._server + path, data=content, headers=headers, params=params, timeout=timeout
            ) as response:
                text = await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnavailableError(f"kubernetes: {method} {path}: {str(error) or type(error).__name__}") from error
        return response.status, parse_of(text)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            info = self._connect()
            self._server = info.server.rstrip("/")
            connector = aiohttp.TCPConnector(limit=self._connections, ssl=info.as_ssl_context())
            self._session = aiohttp.ClientSession(
                connector=connector, headers={**info.as_http_headers(), "User-Agent": "partita"}, proxy=info.proxy_url
            )
        return self._session


def _dry(dry_run: bool) -> dict[str, str]:
    """Parameters of a request that is checked and not carried out."""
    return {"dryRun": "All", "fieldValidation": "Strict"} if dry_run else {}


def parse_of(text: bytes) -> dict[str, Any]:
    """The answer's object; a proxy's plain text becomes a message."""
    try:
        answer = orjson.loads(text or b"{}")
    except orjson.JSONDecodeError:
        return {"message": text[:256].decode(errors="replace")}
    return answer if isinstance(answer, dict) else {"message": str(answer)}


def error_of(method: str, path: str, code: int, answer: Mapping[str, Any]) -> PartitaError:
    """The error of our tree for an HTTP status."""
    message = f"kubernetes: {method} {path}: {answer.get('message') or f'HTTP {code}'}"
    if code == 404:
        return NotFoundError(message)
    if code == 409:
        return ConflictError(message)
    if code == 410:
        return ContinueExpiredError(message)
    if code in (401, 403):
        return ForbiddenError(message, hint=f"kubectl auth can-i {method.lower()} {path}")
    if code == 429 or (code >= 500 and _NOT_TYPED not in message):
        return UnavailableError(message)
    return InvalidError(f"kubernetes: {method} {path}", (Problem("", str(answer.get("message") or code)),))
