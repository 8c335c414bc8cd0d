"""The task types that every worker serves without registration: ``partita.http``, ``partita.log``, ``partita.signal``.

Invariant: a built-in type behaves like a function of a user's: leased, timed, retried and recorded the same way.
Nothing else of a worker knows what these types do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp.abc import AbstractResolver

from partita.engine.engine import Engine
from partita.worker.binding import bind
from partita.worker.builtins import http, log, signal
from partita.worker.builtins.client import HttpClient
from partita.worker.builtins.credentials import Credentials
from partita.worker.registry import TaskFunction

TYPES: Final = (http.TYPE, log.TYPE, signal.TYPE)


class Builtins:
    """The built-in functions of one worker, and the connections that they hold."""

    def __init__(self, engine: Engine, environ: Mapping[str, str], *, resolver: AbstractResolver | None = None) -> None:
        """``environ`` holds credentials; raises InvalidError when one is bad. ``resolver``: None takes the system's."""
        settings = engine.settings
        self._client = HttpClient(settings.worker_http, resolver=resolver)
        request = http.HttpTask(self._client, Credentials(environ), settings.limits.output_bytes)
        functions: dict[str, Callable[..., Any]] = {
            http.TYPE: request,
            log.TYPE: log.log,
            signal.TYPE: signal.SignalTask(engine),
        }
        self._functions = {name: TaskFunction(name, one, bind(one), True) for name, one in functions.items()}

    def get(self, type: str) -> TaskFunction | None:  # noqa: A002 - the word manifests use
        """The function of a type."""
        return self._functions.get(type)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
