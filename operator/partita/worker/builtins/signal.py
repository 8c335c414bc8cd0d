"""The task type ``partita.signal``: a signal to another run of the same namespace.

Invariant: all attempts of one task send the same signal id, and a run takes an id once, so that a task that runs twice
signals once. Whether the run takes the signal is decided by the engine like for any other sender. Trade-off: a database
that is away is waited for, for as long as the attempt lasts, since the run may have been signalled already.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Final
from uuid import UUID

from partita.domain.errors import InvalidError, NotFoundError, UnavailableError
from partita.domain.names import OBJECT, SIGNAL_IDENTITY, SIGNAL_NAME, Form
from partita.domain.payload import Json, Payload
from partita.domain.record import record
from partita.domain.state.events import Reply, SignalReceived
from partita.engine.engine import Engine
from partita.engine.supervisor import Backoff
from partita.store.reads import find_run
from partita.worker.builtins.inputs import Fields
from partita.worker.context import TaskContext
from partita.worker.failures import BuiltinError

TYPE: Final = "partita.signal"
REFUSED: Final = "signal_refused"
NOT_FOUND: Final = "run_not_found"
ALREADY_SENT: Final = "AlreadySent"


@record(kw_only=True)
class _Order:
    """What the input asks for."""

    run: str
    signal: SignalReceived


class SignalTask:
    """The function of the type."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, ctx: TaskContext, input: Json) -> Json:  # noqa: A002 - the SDK's word
        """Send the signal; raises InvalidTaskInputError, and BuiltinError for a run that is not there or refuses it."""
        order = _order(ctx, input)
        backoff, failures = Backoff(), 0
        while True:
            try:
                return await self._send(ctx.namespace, order)
            except UnavailableError:
                failures += 1
                await asyncio.sleep(backoff.pause(failures))

    async def _send(self, namespace: str, order: _Order) -> Json:
        try:
            run_id = await self._run_id(namespace, order.run)
            reply = await self._engine.apply(run_id, order.signal)
        except NotFoundError:
            message = f"run {namespace}/{order.run}: does not exist; expected a run's id or name in this namespace"
            raise BuiltinError(NOT_FOUND, message, details={"run": order.run}) from None
        except InvalidError as error:
            raise BuiltinError(REFUSED, error.message, details={"reason": error.reason}) from None
        if reply.outcome == "refused":
            details = {"reason": reply.reason, "message": reply.message, "runId": str(run_id)}
            raise BuiltinError(REFUSED, f"run {order.run}: {reply.reason}: {reply.message}", details=details)
        return {"runId": str(run_id), "id": order.signal.id, "state": _state(reply)}

    async def _run_id(self, namespace: str, run: str) -> UUID:
        """The run of this namespace; raises NotFoundError."""
        try:
            run_id = UUID(run)
        except ValueError:
            return await find_run(self._engine.database, namespace, run)
        row = await self._engine.database.fetchrow("run_by_id", run_id)
        if row is None or row["namespace"] != namespace:
            raise NotFoundError(f"run {run}: does not exist")
        return run_id


def _order(ctx: TaskContext, value: Json) -> _Order:
    fields = Fields(value, ("run", "name", "payload", "id"))
    run = _named(fields, "run", OBJECT)
    name = _named(fields, "name", SIGNAL_NAME)
    signal_id = _named(fields, "id", SIGNAL_IDENTITY) if fields.has("id") else _own_id(ctx)
    fields.done()
    payload = Payload.of(fields.value("payload"))
    sender = f"run {ctx.run_id}, node {ctx.node}"
    return _Order(run=run, signal=SignalReceived(id=signal_id, name=name, payload=payload, sender=sender))


def _named(fields: Fields, name: str, form: Form) -> str:
    """A field that has a form; empty when it has a problem."""
    value = fields.value(name)
    if not isinstance(value, str):
        return fields.text(name, form.expected)
    if problem := form.problem(value):
        fields.problem(name, problem)
    return value


def _own_id(ctx: TaskContext) -> str:
    """The same for every attempt of the task, and for no other task."""
    return f"{ctx.run_id.hex}:{sha256(ctx.idempotency_key.encode()).hexdigest()[:24]}"


def _state(reply: Reply) -> str:
    return ALREADY_SENT if reply.outcome == "already_applied" else reply.reason
