"""Which handler kopf calls for which kind, in a registry of our own (kopf's default one is a global).

WorkflowRun is not among them: there may be ten thousands of those, and kopf's care for each event costs more than what
has to be done about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import kopf

from partita.domain.errors import PartitaError
from partita.kube.definitions import Definitions
from partita.kube.hosting import Host
from partita.kube.installation import EngineEvents
from partita.kube.resources import DEFINITIONS, ENGINES, GROUP, VERSION


def build_registry(
    connect: Callable[[], kopf.ConnectionInfo],
    definitions: Definitions,
    host: Host,
    engine_events: EngineEvents,
    namespaces: Sequence[str],
) -> kopf.OperatorRegistry:
    """All handlers of the operator. ``namespaces``: those whose definitions are its own; empty means all."""
    registry = kopf.OperatorRegistry()
    _login(registry, connect)

    def watched(namespace: str | None, **_: Any) -> bool:
        return not namespaces or namespace in namespaces

    for decorator in (kopf.on.create, kopf.on.update, kopf.on.resume):
        decorator(GROUP, VERSION, DEFINITIONS.plural, id="definition", registry=registry, when=watched)(
            definitions.on_change
        )
    kopf.on.event(GROUP, VERSION, DEFINITIONS.plural, id="definition-deleted", registry=registry, when=watched)(
        definitions.on_event
    )
    kopf.on.event(GROUP, VERSION, ENGINES.plural, id="engine", registry=registry)(engine_events.on_event)
    host.register(registry)
    return registry


def _login(registry: kopf.OperatorRegistry, connect: Callable[[], kopf.ConnectionInfo]) -> None:
    """A registry without a login handler has no credentials at all."""

    @kopf.on.login(registry=registry, id="credentials", retries=3)
    def login(**_: Any) -> kopf.ConnectionInfo:
        try:
            return connect()
        except PartitaError as error:
            raise kopf.TemporaryError(str(error), delay=2) from error
