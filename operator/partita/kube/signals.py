"""Room for new signals: acknowledged ones are taken out of a crowded spec.

``spec.signals`` holds at most 64 entries and people append to it by JSON patch at any time. Every removal is guarded by
the id at its position, so that a concurrent change makes the whole patch fail instead of hitting another signal; the
next status write tries again. PostgreSQL remembers every id for ever, so a removed signal cannot be delivered twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from partita.domain.errors import InvalidError, PartitaError
from partita.kube.client import JSON_PATCH, KubeClient
from partita.kube.mirror import Mirror
from partita.kube.resources import RUNS

log = logging.getLogger(__name__)

CROWDED: Final = 48
"""Above this many signals the acknowledged ones are removed."""
KEPT: Final = 16
"""So many of the newest acknowledged ones stay, for people to see."""


async def prune(client: KubeClient, mirror: Mirror, body: Mapping[str, Any]) -> None:
    """Remove acknowledged signals from a crowded spec; whatever goes wrong is left to the next time."""
    operations = removals(body)
    if not operations:
        return
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        mirror.observe(await client.patch(RUNS.path(namespace, name), operations, JSON_PATCH))
    except InvalidError:
        log.debug("signals of %s/%s changed while they were being removed", namespace, name)
    except PartitaError as error:
        log.warning("signals of %s/%s: %s", namespace, name, error)


def removals(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSON patch that removes all acknowledged signals but the newest; empty while there is room."""
    present = [signal["id"] for signal in (body.get("spec") or {}).get("signals") or ()]
    if len(present) <= CROWDED:
        return []
    known = {signal["id"] for signal in (body.get("status") or {}).get("signals") or ()}
    acknowledged = [position for position, identity in enumerate(present) if identity in known]
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": body["metadata"]["uid"]},
    ]
    for position in reversed(acknowledged[: len(acknowledged) - KEPT]):
        path = f"/spec/signals/{position}"
        operations += [
            {"op": "test", "path": f"{path}/id", "value": present[position]},
            {"op": "remove", "path": path},
        ]
    return operations if len(operations) > 1 else []
