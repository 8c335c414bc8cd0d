"""From a WorkflowRun object to the engine: start its run, or apply its controls, or remember why there is no run.

Invariant: the run's id follows from the object (or is named by it) and controls are applied by the object's generation,
so that taking the same object in any number of times, by any number of operators, gives one run with each control
applied once. An object is refused as a whole or not at all; nothing is half-started. Trade-off: a refusal that may
heal (the definition is missing, the clock is behind) is kept as *waiting* and the object is simply taken in again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from partita.domain.errors import (
    DefinitionNotFoundError,
    EngineError,
    InvalidError,
    NotFoundError,
    PartitaError,
    TooEarlyError,
    UnavailableError,
)
from partita.domain.ids import derived_id
from partita.domain.manifest import parse_run
from partita.domain.payload import Payload
from partita.domain.state.events import CancelRequested, ControlsApplied, SignalReceived
from partita.engine.engine import Engine
from partita.engine.held import HeldByObjectError
from partita.engine.manifests import start_request
from partita.engine.requests import CrRef
from partita.store.projection import ProjectionStore, RefusalRow

log = logging.getLogger(__name__)

BY: Final = "kubernetes"
"""Who started or controlled a run through its object."""
_MAY_HEAL: Final = (DefinitionNotFoundError, TooEarlyError, EngineError)
_MESSAGE: Final = 4096


class Outcome(StrEnum):
    """What became of an object."""

    STARTED = "started"
    APPLIED = "applied"
    """The run existed; this generation's controls are applied."""
    WAITING = "waiting"
    """Refused for now; taking it in again may help."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Which installation takes the objects in."""

    cluster_uid: str
    engine_id: str


class Reconciler:
    """Takes in WorkflowRun objects of one installation. UnavailableError passes through: try again."""

    def __init__(
        self,
        engine: Engine,
        store: ProjectionStore,
        installation: Installation,
        absent: Callable[[str, str, str], Awaitable[bool]],
    ) -> None:
        """``absent``: whether no WorkflowRun object of this namespace, name and uid exists."""
        self._absent = absent
        self._engine = engine
        self._store = store
        self._installation = installation

    async def take_in(self, body: Mapping[str, Any], *, refused: bool = False) -> Outcome:
        """Bring the engine to what an object orders.

        ``refused``: the object may have been refused before, so that a refusal has to be forgotten when it starts.
        """
        known = _known_run(body)
        if known is not None and await self._control(known, body):
            return Outcome.APPLIED
        try:
            outcome = await self._start(body)
        except UnavailableError:
            raise
        except DefinitionNotFoundError as error:
            await self._refuse(body, error)
            return await self._look_again(body)
        except PartitaError as error:
            return await self._refuse(body, error)
        if refused:
            await self._forget(body)
        return outcome

    async def _look_again(self, body: Mapping[str, Any]) -> Outcome:
        """Start after all, if the definition was deployed before it could know of the refusal just recorded.

        Whoever deploys it from now on finds the refusal, so that between the two nobody waits unseen.
        """
        try:
            outcome = await self._start(body)
        except UnavailableError:
            raise
        except PartitaError as error:
            return await self._refuse(body, error)
        await self._forget(body)
        return outcome

    async def _forget(self, body: Mapping[str, Any]) -> None:
        await self._store.forget_refusals(self._installation.engine_id, [body["metadata"]["uid"]])

    async def gone(self, uid: str, run_id: UUID | None) -> None:
        """An object was deleted: cancel its run gracefully, forget its refusal."""
        if run_id is None:
            await self._store.forget_refusals(self._installation.engine_id, [uid])
            return
        event = CancelRequested(mode="Graceful", reason="the WorkflowRun object was deleted", by=BY)
        try:
            await self._engine.apply(run_id, event)
        except NotFoundError:
            log.debug("run %s of a deleted object does not exist", run_id)

    async def _control(self, run_id: UUID, body: Mapping[str, Any]) -> bool:
        """Apply the object's controls to its run; False when the run does not exist (yet, or any more)."""
        try:
            await self._engine.apply(run_id, controls_of(body))
        except NotFoundError:
            return bool((body.get("status") or {}).get("finishedAt"))
        return True

    async def _start(self, body: Mapping[str, Any]) -> Outcome:
        manifest, problems = parse_run(body)
        if manifest is None:
            raise InvalidError(f"WorkflowRun {body['metadata']['name']}", problems)
        controls, own = controls_of(body), derived_run_id(body["metadata"])
        request = start_request(
            manifest, controls, namespace=manifest.namespace, by=BY, cr=self._object(body["metadata"]), own_id=own
        )
        try:
            reply = await self._engine.start(request)
        except HeldByObjectError as error:
            if not await self._inherits(body["metadata"], error.run_id):
                raise
            reply = await self._engine.start(request)
        if reply.created:
            return Outcome.STARTED
        await self._engine.apply(reply.run_id, controls)
        return Outcome.APPLIED

    async def _inherits(self, metadata: Mapping[str, Any], run_id: UUID) -> bool:
        """Whether the run of the same order is this object's now, since the one that it belonged to is gone.

        What that means for an unfinished run is done first, so that it does not matter who notices it first.
        """
        held = await self._store.object_of(run_id)
        if held is None or not await self._absent(held["namespace"], held["name"], held["cr_uid"]):
            return False
        await self.gone(held["cr_uid"], run_id)
        return await self._store.adopt(run_id, gone=held["cr_uid"], cr_uid=metadata["uid"], name=metadata["name"])

    def _object(self, metadata: Mapping[str, Any]) -> CrRef:
        return CrRef(
            cluster_uid=self._installation.cluster_uid,
            engine_id=self._installation.engine_id,
            uid=metadata["uid"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            generation=metadata["generation"],
        )

    async def _refuse(self, body: Mapping[str, Any], error: PartitaError) -> Outcome:
        metadata = body["metadata"]
        waiting = isinstance(error, _MAY_HEAL)
        reference = (body.get("spec") or {}).get("definitionRef") or {}
        refusal = RefusalRow(
            cr_uid=metadata["uid"],
            cr_generation=metadata["generation"],
            cr_namespace=metadata["namespace"],
            cr_name=metadata["name"],
            definition=str(reference.get("name") or ""),
            waiting=waiting,
            reason=error.reason,
            message=str(error)[:_MESSAGE].replace("\0", "�"),
        )
        await self._store.record_refusal(self._installation.engine_id, refusal)
        return Outcome.WAITING if waiting else Outcome.REFUSED


def derived_run_id(metadata: Mapping[str, Any]) -> UUID:
    """The run id that follows from an object's metadata."""
    return derived_id(metadata["uid"], datetime.fromisoformat(metadata["creationTimestamp"]))


def run_id_of(body: Mapping[str, Any]) -> UUID:
    """The run of an object: the one its status names, else the one it asks for, else the derived one."""
    text = (body.get("status") or {}).get("runId") or (body.get("spec") or {}).get("runId")
    return UUID(text) if text else derived_run_id(body["metadata"])


def controls_of(body: Mapping[str, Any]) -> ControlsApplied:
    """The controls in an object's spec, whose shapes the API server has checked."""
    spec = body.get("spec") or {}
    return ControlsApplied(
        cr_generation=body["metadata"]["generation"],
        suspend=bool(spec.get("suspend")),
        cancel=_cancel(spec.get("cancel")),
        cancel_nodes=tuple(spec.get("cancelNodes") or ()),
        signals=tuple(_signal(signal) for signal in spec.get("signals") or ()),
    )


def _cancel(cancel: Mapping[str, Any] | None) -> CancelRequested | None:
    if cancel is None:
        return None
    return CancelRequested(mode=cancel.get("mode") or "Graceful", reason=cancel.get("reason") or "", by=BY)


def _signal(signal: Mapping[str, Any]) -> SignalReceived:
    payload = Payload.of(signal.get("payload") or {})
    return SignalReceived(id=signal["id"], name=signal["name"], payload=payload, sender=BY)


def _known_run(body: Mapping[str, Any]) -> UUID | None:
    text = (body.get("status") or {}).get("runId")
    return UUID(text) if text else None
