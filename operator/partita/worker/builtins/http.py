"""The task type ``partita.http``: one request, and its answer as output.

Invariant: every way in which a request can fail has an error type that manifests match, and none of them holds a
credential or a query. The worker retries nothing by itself, apart from what the node's ``retry`` grants.
"""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp

from partita.domain.error_types import TIMEOUT
from partita.domain.payload import Json
from partita.worker.builtins.answer import INVALID_RESPONSE, Answer
from partita.worker.builtins.client import ForbiddenTargetError, HttpClient
from partita.worker.builtins.credentials import Credential, Credentials, CredentialsRefusedError
from partita.worker.builtins.request import HttpRequest, read_request, shown
from partita.worker.context import TaskContext
from partita.worker.failures import BuiltinError

TYPE: Final = "partita.http"
UNREACHABLE: Final = "http_unreachable"
FORBIDDEN_TARGET: Final = "http_forbidden_target"
CREDENTIALS: Final = "http_credentials"


class HttpTask:
    """The function of the type."""

    def __init__(self, client: HttpClient, credentials: Credentials, limit: int) -> None:
        """``limit``: bytes of an answer."""
        self._client = client
        self._credentials = credentials
        self._limit = limit

    async def __call__(self, ctx: TaskContext, input: Json) -> Json:  # noqa: A002 - the SDK's word
        """Send the request that the input describes; raises InvalidTaskInputError and BuiltinError."""
        request = read_request(input, ctx.idempotency_key)
        answer = await self._answered(request)
        if not request.expects(answer.status):
            raise _unexpected(request, answer)
        return answer.output()

    async def _answered(self, request: HttpRequest) -> Answer:
        """The answer; errors of the libraries become ours, without what caused them: that may hold headers."""
        credential: Credential | None = None
        seconds = request.timeout_ms / 1000 if request.timeout_ms is not None else None
        try:
            credential = self._credentials.get(request.credentials) if request.credentials else None
            async with asyncio.timeout(seconds):
                return await self._client.exchange(request, credential, self._limit)
        except BuiltinError as error:
            kind, message = error.kind, error.message
        except (TimeoutError, ForbiddenTargetError, CredentialsRefusedError, aiohttp.ClientError, OSError) as error:
            kind, message = _meaning(error)
        if credential is not None:
            message = credential.mask(message)
        raise BuiltinError(kind, f"{request.method} {shown(request.url)}: {message}")


def _meaning(error: Exception) -> tuple[str, str]:
    """Type and message of what stopped a request."""
    if isinstance(error, ForbiddenTargetError):
        return FORBIDDEN_TARGET, str(error)
    if isinstance(error, CredentialsRefusedError):
        return CREDENTIALS, str(error)
    if isinstance(error, aiohttp.ServerTimeoutError):
        return TIMEOUT, "could not connect in time"
    if isinstance(error, TimeoutError):
        return TIMEOUT, "took longer than the timeout of the input"
    if isinstance(error, aiohttp.ClientResponseError):
        return INVALID_RESPONSE, f"the answer is no HTTP: {error.message}"
    return UNREACHABLE, str(error) or type(error).__name__


def _unexpected(request: HttpRequest, answer: Answer) -> BuiltinError:
    message = f"{request.method} {shown(request.url)}: {answer.status} {answer.reason}".rstrip()
    return BuiltinError(
        f"http_{answer.status}",
        f"{message}; expected {request.expected()}",
        details=answer.output(),
        after_ms=answer.retry_after_ms(),
    )
