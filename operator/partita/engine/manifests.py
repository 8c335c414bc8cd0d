"""From a parsed WorkflowRun to the request that starts it, whoever read it: the operator or the command line."""

from __future__ import annotations

from uuid import UUID

from partita.domain.manifest import RunManifest
from partita.domain.payload import Payload
from partita.domain.state.events import CancelRequested, ControlsApplied, SignalReceived
from partita.engine.requests import CrRef, StartRequest
from partita.minting import new_id


def start_request(
    manifest: RunManifest,
    controls: ControlsApplied,
    *,
    namespace: str,
    by: str,
    cr: CrRef | None = None,
    own_id: UUID | None = None,
) -> StartRequest:
    """The request of a manifest.

    ``own_id``: the run's id unless the manifest names one, and the request's id. The controls of an object always go
    with it, since they carry the generation that the object's status has to observe.
    """
    return StartRequest(
        namespace=namespace,
        name=manifest.name,
        definition=manifest.definition,
        version=manifest.version,
        input=manifest.input,
        run_id=manifest.run_id or own_id,
        request_id=own_id or new_id(),
        cr=cr,
        idempotency_key=manifest.idempotency_key,
        start_at=manifest.start_at,
        priority=manifest.priority,
        tags=manifest.tags,
        attributes=manifest.attributes,
        timeout_ms=manifest.timeout_ms,
        started_by=by,
        controls=None if cr is None and is_idle(controls) else controls,
    )


def controls_in(manifest: RunManifest, *, generation: int, by: str) -> ControlsApplied:
    """The controls that a manifest carries from the start."""
    cancel = manifest.cancel
    return ControlsApplied(
        cr_generation=generation,
        suspend=manifest.suspend,
        cancel=None if cancel is None else CancelRequested(mode=cancel.mode, reason=cancel.reason, by=by),
        cancel_nodes=manifest.cancel_nodes,
        signals=tuple(
            SignalReceived(id=signal.id, name=signal.name, payload=Payload.of(signal.payload), sender=by)
            for signal in manifest.signals
        ),
    )


def is_idle(controls: ControlsApplied) -> bool:
    """Whether the controls ask for nothing."""
    return not (controls.suspend or controls.cancel or controls.cancel_nodes or controls.signals)
