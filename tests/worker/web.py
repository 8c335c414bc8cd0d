"""HTTP servers on loopback addresses, and the task ``partita.http`` beside them."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from partita.domain.payload import Json
from partita.settings import WorkerHttpSettings
from partita.worker.builtins.client import HttpClient
from partita.worker.builtins.credentials import Credentials
from partita.worker.builtins.http import HttpTask
from partita.worker.context import TaskContext
from partita.worker.failures import TaskError, failure_of
from tests.worker.support import claimed

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK = WorkerHttpSettings(allowed_targets=("127.0.0.1", "::1"))


@dataclass
class Site:
    """A server and what it was asked."""

    host: str
    port: int
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "") -> str:
        """A URL of it, by another name if wanted."""
        name = host or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"http://{name}:{self.port}{path}"


@asynccontextmanager
async def serving(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[Site]:
    """A server that answers every path with one function."""
    site = Site(host, 0)

    async def answer(request: web.Request) -> web.StreamResponse:
        site.requests.append(request)
        site.bodies.append(await request.read())
        return await handler(request)

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        site.port = listener.getsockname()[1]
        await web.SockSite(runner, listener).start()
        try:
            yield site
        finally:
            await runner.cleanup()


class Names(AbstractResolver):
    """A resolver of these names; each answer is used once, the last one for ever."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._answers = {name: list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        """The next answer."""
        del family
        self.asked.append(host)
        answers = self._answers.get(host)
        if answers is None:
            raise OSError(f"{host}: unknown")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing to release."""


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


@asynccontextmanager
async def http(
    settings: WorkerHttpSettings = LOOPBACK,
    *,
    environ: Mapping[str, str] | None = None,
    resolver: AbstractResolver | None = None,
    limit: int = 1_048_576,
) -> AsyncIterator[HttpTask]:
    """The task with a client of its own."""
    client = HttpClient(settings, resolver=resolver)
    try:
        yield HttpTask(client, Credentials(environ or {}), limit)
    finally:
        await client.close()


async def send(task: HttpTask, attempt: int = 1, **value: Json) -> Any:
    """The output of a request."""
    return await task(TaskContext(claimed(type="partita.http", input=value, attempt=attempt)), value)


async def fails(task: HttpTask, **value: Json) -> tuple[str, str, Any]:
    """Type, message and details of the error of a request."""
    try:
        output = await send(task, **value)
    except TaskError as error:
        found = failure_of(error).error
        return found.type, found.message, found.details.value if found.details is not None else None
    raise AssertionError(f"did not fail: {output}")


async def plain(_: web.Request) -> web.Response:
    """An answer to anything."""
    return web.json_response({"ok": True})
