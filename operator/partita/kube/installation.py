"""Who this operator is: its cluster, its installation, and what the WorkflowEngine object tells it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from partita.domain.errors import ConflictError, ForbiddenError, NotFoundError, PartitaError
from partita.engine.reconcile import Installation
from partita.kube.client import KubeClient
from partita.kube.engine_object import EngineObject
from partita.kube.hosting import Host
from partita.kube.resources import API_VERSION, DEFINITIONS, ENGINES, GROUP, NAMESPACES, RUNS
from partita.kube.retrying import retrying
from partita.settings import OperatorSettings
from partita.store.projection import ProjectionStore

log = logging.getLogger(__name__)


class CrdsMissingError(NotFoundError):
    """The custom resource definitions are not installed."""

    reason = "CrdsMissing"


async def identify(client: KubeClient, settings: OperatorSettings) -> Installation:
    """The installation that this operator belongs to: one a namespace of a cluster."""
    cluster_uid = settings.cluster_uid
    if not cluster_uid:
        try:
            cluster_uid = (await client.get(NAMESPACES.path(name="kube-system")))["metadata"]["uid"]
        except ForbiddenError as error:
            raise ForbiddenError(
                f"{error.message}; it identifies the cluster", hint="set PARTITA_OPERATOR_CLUSTER_UID"
            ) from error
    return Installation(cluster_uid=cluster_uid, engine_id=f"{cluster_uid}/{settings.namespace}")


async def check_crds(client: KubeClient) -> None:
    """Raise CrdsMissingError unless all three kinds are served.

    The API says which kinds it serves to everybody who is known to it; whoever may not even ask is taken at their word.
    """
    try:
        served = {each["name"] for each in (await client.get(f"/apis/{API_VERSION}"))["resources"]}
    except NotFoundError:
        served = set()
    except ForbiddenError:
        return
    for resource in (DEFINITIONS, RUNS, ENGINES):
        if resource.plural not in served:
            raise CrdsMissingError(
                f"kubernetes: {resource.plural}.{GROUP}: is not installed; expected the CRDs of this version",
                hint="kubectl apply --server-side -f crds/",
            )


async def check_owner(store: ProjectionStore, installation: Installation) -> None:
    """Raise ConflictError when the schema belongs to another installation; naming both."""
    owner = (await store.engine_state())["engine_id"]
    if owner is not None and owner != installation.engine_id:
        raise foreign(owner, installation)


async def begin_term(store: ProjectionStore, installation: Installation) -> int:
    """A new epoch for a new leader. Raises ConflictError when the schema belongs to another installation."""
    epoch = await store.claim_engine(installation.engine_id)
    if epoch is None:
        raise foreign((await store.engine_state())["engine_id"], installation)
    return epoch


def foreign(owner: str, installation: Installation) -> ConflictError:
    """The error for a schema of another installation."""
    return ConflictError(
        f"database: schema: belongs to installation {owner}; expected {installation.engine_id}",
        hint="PARTITA_DATABASE_SCHEMA with another name, since an installation has a schema of its own",
    )


@dataclass(slots=True)
class EngineEvents:
    """The handler of the WorkflowEngine: its spec goes to those who obey it, a deleted object is made again.

    ``time_to_live`` takes ``spec.ttlSecondsAfterFinished``, None where it is not set.
    """

    host: Host
    target: EngineObject
    store: ProjectionStore
    time_to_live: Callable[[int | None], None]
    epoch: int
    paused: bool | None = None

    async def on_event(self, event: Mapping[str, Any], **_: Any) -> None:
        """kopf's handler for every event of every WorkflowEngine."""
        metadata = event["object"]["metadata"]
        if not self.host.owns(metadata.get("namespace"), metadata["name"]):
            return
        try:
            if event["type"] == "DELETED":
                await self._deleted(metadata["uid"])
            else:
                spec = event["object"].get("spec") or {}
                self.time_to_live(spec.get("ttlSecondsAfterFinished"))
                await self._pause(bool(spec.get("paused")))
        except PartitaError as error:
            log.warning("WorkflowEngine: %s", error)

    async def _deleted(self, uid: str) -> None:
        self.host.deleted(uid)
        await retrying(self.target.ensure)

    async def _pause(self, paused: bool) -> None:
        if paused != self.paused:
            await retrying(lambda: self.store.pause(paused, self.epoch))
            self.paused = paused
