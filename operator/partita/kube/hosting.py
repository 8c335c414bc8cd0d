"""The WorkflowEngine object hosts the operator's duties: one kopf daemon each, begun when the object appears.

Invariant: a duty runs at most once in a process, and needs no finalizer: kopf would add one to guarantee the end of
its daemons, and then ``kubectl delete`` and ``helm uninstall`` hang when the operator is gone. Therefore the daemons
are registered without one, and the event that tells of the deletion ends them here, by the object's uid, since kopf
has then already forgotten them. The duties themselves go on, under the supervisor, until the operator ends: deleting
the object never stops the engine, and the daemons of the object that is made in its place find them at work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import kopf
from kopf._cogs.structs.ids import HandlerId
from kopf._cogs.structs.references import Selector
from kopf._core.intents.handlers import DaemonHandler  # the decorator cannot leave the finalizer out

from partita.engine.service import Service
from partita.engine.supervisor import Supervisor
from partita.kube.resources import ENGINE_NAME, ENGINES, GROUP, VERSION

log = logging.getLogger(__name__)


class Host:
    """Runs services under the daemons of one WorkflowEngine object."""

    def __init__(self, namespace: str, services: Sequence[Service], supervisor: Supervisor) -> None:
        self._namespace = namespace
        self._services = services
        self._supervisor = supervisor
        self._ended: dict[str, asyncio.Event] = {}
        self._started: set[str] = set()
        self.daemons: dict[tuple[str, str], None] = {}
        """Daemons that run now, as (uid of the object, name of the service)."""

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Add a daemon for every service."""
        for service in self._services:
            registry._spawning.append(self._handler(service))  # noqa: SLF001  # as the decorator does

    def owns(self, namespace: str | None, name: str | None) -> bool:
        """Whether an object is the WorkflowEngine of this installation."""
        return namespace == self._namespace and name == ENGINE_NAME

    def deleted(self, uid: str) -> None:
        """End the daemons of a deleted object."""
        self._event(uid).set()

    def _event(self, uid: str) -> asyncio.Event:
        return self._ended.setdefault(uid, asyncio.Event())

    def _handler(self, service: Service) -> DaemonHandler:
        async def daemon(uid: str, stopped: kopf.DaemonStopped, **_: Any) -> None:
            await self._run(service, uid, stopped)

        return DaemonHandler(
            fn=daemon,
            id=HandlerId(service.name),
            param=None,
            errors=None,
            timeout=None,
            retries=None,
            backoff=1.0,
            selector=Selector(GROUP, VERSION, ENGINES.plural),
            labels=None,
            annotations=None,
            when=lambda namespace, name, **_: self.owns(namespace, name),
            field=None,
            value=None,
            initial_delay=None,
            requires_finalizer=None,
            cancellation_backoff=5.0,
            cancellation_timeout=5.0,
            cancellation_polling=None,
        )

    async def _run(self, service: Service, uid: str, stopped: kopf.DaemonStopped) -> None:
        """Begin the service if it does not run yet, and stay until the operator stops or the object is deleted."""
        if service.name not in self._started:
            self._started.add(service.name)
            self._supervisor.start(service)
        self.daemons[uid, service.name] = None
        try:
            await _first(self._event(uid).wait, lambda: _stopped(stopped))
        finally:
            del self.daemons[uid, service.name]


async def _stopped(stopped: kopf.DaemonStopped) -> None:
    await stopped.wait()


async def _first(*waits: Callable[[], Any]) -> None:
    """Return when the first of these coroutines does."""
    tasks = [asyncio.ensure_future(wait()) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
