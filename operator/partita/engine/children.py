"""Starting child runs: exactly what a run has decided, or the word to it that this cannot be.

Invariant: a child has one start request, its own id, so that starting it twice is starting it once; its version was
fixed by the run that started it and is taken as it is, whatever became of the definition since. What refuses it for
good ends the parent's node, in one transaction with the row that asked. Trade-off: a child that nobody waits for (it is
detached) has nobody to tell, so that its row stays as a dead letter.
"""

from __future__ import annotations

from typing import Final

from partita.domain.errors import (
    ConflictError,
    DefinitionNotFoundError,
    InvalidError,
    InvalidInputError,
    PartitaError,
)
from partita.domain.manifest import prepare_input
from partita.domain.payload import Payload
from partita.domain.state.effects import ChildStart, Message
from partita.domain.state.events import ChildFinished, RunStarted
from partita.domain.state.rows import ErrorInfo, RunStatus
from partita.engine.coordinator import Coordinator
from partita.engine.definitions import Definitions
from partita.engine.messages import Delivery
from partita.engine.prepared import Prepared, hash_of
from partita.engine.requests import StartReply, StartRequest, Version

FINAL: Final = (InvalidError, ConflictError, DefinitionNotFoundError)
"""Refusals of a start that trying again does not heal."""


class Children:
    """Starts of one process."""

    def __init__(self, coordinator: Coordinator, definitions: Definitions, input_bytes: int) -> None:
        self._coordinator = coordinator
        self._definitions = definitions
        self._input_bytes = input_bytes

    async def start(self, delivery: Delivery, child: ChildStart) -> StartReply | None:
        """Start a child, or find it started. Raises FINAL errors when it never can be, others to be tried again."""
        version = await self._definitions.exact(delivery.namespace, child.definition, child.version)
        request = StartRequest(
            namespace=delivery.namespace,
            definition=child.definition,
            version=child.version,
            run_id=delivery.run_id,
            request_id=delivery.run_id,
            priority=child.priority,
            timeout_ms=child.timeout_ms,
            started_by=child.started_by,
        )
        prepared = self._prepare(delivery, child, version)
        return await self._coordinator.start(request, version, prepared, inbox_id=delivery.inbox_id, decided=True)

    def _prepare(self, delivery: Delivery, child: ChildStart, version: Version) -> Prepared:
        payload = child.input
        if not child.subflow:  # whose input is what the parent's own expressions made of it
            payload = prepare_input(version.definition, payload.value, most_bytes=self._input_bytes)
        event = RunStarted(
            run_id=delivery.run_id,
            namespace=delivery.namespace,
            name="",
            definition=child.definition,
            version=child.version,
            input=payload,
            priority=child.priority,
            timeout_ms=child.timeout_ms,
            subflow=child.subflow,
            parent=child.parent,
            mailbox_id=child.mailbox_id,
            depth=child.depth,
        )
        return Prepared(event, (), hash_of(child.definition, payload))


def refusal(delivery: Delivery, child: ChildStart, error: PartitaError) -> Message | None:
    """What a parent is told of a child that was refused for good; None when nobody waits for it."""
    parent = child.parent
    if parent is None:
        return None
    event = ChildFinished(
        node=parent.node,
        index=parent.index,
        attempt=parent.attempt,
        child=delivery.run_id,
        status=RunStatus.FAILED,
        error=_error(error),
    )
    return Message(parent.run_id, event)


def _error(error: PartitaError) -> ErrorInfo:
    if isinstance(error, DefinitionNotFoundError):
        return ErrorInfo("definition_not_found", str(error))
    if isinstance(error, InvalidInputError):
        problems = [{"path": problem.path, "message": problem.message} for problem in error.problems]
        return ErrorInfo("invalid_input", str(error), Payload.of(problems))
    return ErrorInfo("fatal", str(error))
