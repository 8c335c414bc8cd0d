"""The label by which people and Services find the leader among the pods of the operator.

Invariant: it is a sign and decides nothing: failing to set or to remove it neither delays nor ends a term. Only the own
pod is touched. A pod whose leader was killed keeps the label until the process that follows in it removes it at its
start; one whose process is frozen keeps it, and is not ready. Trade-off: the label is set again twice a minute, which
changes nothing where it stands, against watching pods.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from partita.domain.errors import PartitaError
from partita.engine.service import TickingService
from partita.kube.client import KubeClient
from partita.kube.resources import PODS

log = logging.getLogger(__name__)

LEADER_LABEL: Final = "partita.io/leader"
INTERVAL_SECONDS = 30.0
REMOVE_SECONDS = 1.0


class PodLabel:
    """The label of one pod; without a pod's name it does nothing."""

    def __init__(self, client: KubeClient, namespace: str, name: str) -> None:
        self._client = client
        self._path = PODS.path(namespace, name) if namespace and name else ""
        self._failure = ""

    async def put(self) -> None:
        """Mark the pod as the leader's."""
        await self._patch("true")

    async def remove(self) -> None:
        """Take the mark away, in a second or not at all."""
        try:
            async with asyncio.timeout(REMOVE_SECONDS):
                await self._patch(None)
        except TimeoutError:
            log.warning("label %s: could not be removed within %g s", LEADER_LABEL, REMOVE_SECONDS)

    async def _patch(self, value: str | None) -> None:
        if not self._path:
            return
        try:
            await self._client.patch(self._path, {"metadata": {"labels": {LEADER_LABEL: value}}})
        except PartitaError as error:
            if str(error) != self._failure:
                log.warning("label %s: %s; the operator works without it", LEADER_LABEL, error)
            self._failure = str(error)
        else:
            self._failure = ""


class Labelling(TickingService):
    """Keeps the mark of a leader in place for the length of its term."""

    def __init__(self, label: PodLabel) -> None:
        super().__init__("leader-label")
        self._label = label

    async def tick(self) -> float:
        """Set it, in case somebody has removed it."""
        await self._label.put()
        return INTERVAL_SECONDS
