"""Starting runs: from a request to a prepared start, and starts and signals inside a caller's own transaction.

Invariant: definition, version and input are checked before anything is stored, and the transaction checks once more
that the version is still the one to start. Trade-off: a version that is replaced between the two costs one more turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from partita.domain import ids
from partita.domain.errors import DefinitionNotFoundError, InvalidError, InvalidInputError, Problem
from partita.domain.manifest import prepare_input
from partita.domain.payload import encode
from partita.domain.state.events import Event, RunStarted, SignalReceived
from partita.engine import relay
from partita.engine.admission import run_keys
from partita.engine.coordinator import Coordinator
from partita.engine.definitions import Definitions
from partita.engine.prepared import Prepared, hash_of
from partita.engine.requests import StartReply, StartRequest, Version
from partita.settings import Settings
from partita.store import starts
from partita.store.database import Connection, Database
from partita.store.starts import RunKey
from partita.store.writes import insert_messages

_VERSION = 0xF << 76 | 0b11 << 62
_SEVEN = 0x7 << 76 | 0b10 << 62
"""Version 7 in the bits of an id that tell version and variant."""
TRIES = 5
"""How often a start follows a definition that is being replaced, before it takes the version it found."""


class Starts:
    """Start requests of one process."""

    def __init__(
        self, coordinator: Coordinator, definitions: Definitions, settings: Settings, database: Database
    ) -> None:
        self._coordinator = coordinator
        self._definitions = definitions
        self._limits = settings.limits
        self._ahead_ms = settings.retention.accept_ahead_ms
        self._sql = database.sql

    async def start(self, request: StartRequest, *, inbox_id: int | None = None) -> StartReply:
        """Start a run; see ``Engine.start`` for what it raises."""
        for number in range(1, TRIES + 1):
            version = await self.resolve(request)
            prepared = self.prepare(request, version)
            # at last the version counts that was deployed when this request asked, though it may not be any more
            asked = request if number < TRIES else replace(request, version=version.version)
            reply = await self._coordinator.start(asked, version, prepared, inbox_id=inbox_id)
            if reply is not None:
                return reply
            self.forget(request)
        raise gone(request)

    async def resolve(self, request: StartRequest) -> Version:
        """The version to start, which may be remembered; the transaction checks it. Raises DefinitionNotFoundError."""
        return await self._definitions.resolve(request.namespace, request.definition, request.version, fresh=False)

    def forget(self, request: StartRequest) -> None:
        """The version that is remembered is no longer the one to start."""
        self._definitions.forget(request.namespace, request.definition)

    def prepare(self, request: StartRequest, version: Version) -> Prepared:
        """Check a request against its version; raises InvalidInputError, and InvalidError for its run id."""
        payload = prepare_input(version.definition, request.input, most_bytes=self._limits.input_bytes)
        cr = request.cr
        event = RunStarted(
            run_id=_run_id(request),
            namespace=request.namespace,
            name=cr.name if cr else request.name,
            definition=request.definition,
            version=version.version,
            input=payload,
            priority=request.priority,
            timeout_ms=request.timeout_ms,
            start_at=request.start_at,
            cr_uid=cr.uid if cr else "",
            controls=request.controls,
        )
        keys = _keys(request)
        return Prepared(event, keys, hash_of(request.definition, payload) if keys else "")

    async def start_in(self, connection: Connection, requests: Sequence[StartRequest]) -> list[UUID]:
        """Put starts into the inbox, within the caller's transaction; the runs begin after its commit.

        Raises InvalidInputError, ExpiredError and TooEarlyError for what could never be delivered; the definition and
        its schema are looked at later.
        """
        rows = [self._inbox_row(request) for request in requests]
        if rows:
            await self._check_window(connection, [row[0] for row in rows])
            await insert_messages(connection, self._sql, rows, 0)
        return [row[0] for row in rows]

    async def _check_window(self, connection: Connection, run_ids: Sequence[UUID]) -> None:
        """Refuse ids that are too old or too far ahead, before they become rows that nobody can deliver."""
        floor, now = tuple(await connection.fetchrow(self._sql("retention_floor")) or ())
        for run_id in run_ids:
            ids.check_acceptable(run_id, floor=floor, now=now, ahead_ms=self._ahead_ms)

    def _inbox_row(self, request: StartRequest) -> tuple[UUID, str, str]:
        run_id = _run_id(request)
        try:
            body = encode(relay.start_body(request, run_id), f"run {run_id}")
            _bound(f"run {run_id}: input", encode(request.input), self._limits.input_bytes)
        except InvalidError as error:
            raise InvalidInputError(error.subject, error.problems) from error
        return run_id, "start", body

    async def signal_in(self, connection: Connection, run_id: UUID, signal: Event) -> None:
        """Put a signal into the inbox of a run, within the caller's transaction.

        Raises InvalidError for what could never be delivered; whether the run takes it is known later.
        """
        if not isinstance(signal, SignalReceived):
            raise InvalidError(f"run {run_id}", (Problem("", "only signals can be sent in a transaction"),))
        body = encode(relay.signal_body(signal), f"run {run_id}: signal {signal.id!r}")
        _bound(f"run {run_id}: signal {signal.id!r}: payload", signal.payload.text, self._limits.output_bytes)
        await starts.insert_inbox(connection, self._sql, run_id, "signal", body)


def gone(request: StartRequest) -> DefinitionNotFoundError:
    """The definition was there when the request came, and is not any more."""
    return DefinitionNotFoundError(
        f"WorkflowDefinition {request.namespace}/{request.definition}: was deleted or disabled meanwhile; "
        "expected a deployed definition",
        hint=f"partita definitions -n {request.namespace}",
    )


def names_of(request: StartRequest) -> frozenset[object]:
    """What only one run may have: its id, and its keys. Raises InvalidError for an id that no run may have."""
    return frozenset((_run_id(request), *_keys(request)))


def _keys(request: StartRequest) -> tuple[RunKey, ...]:
    cr, key = request.cr, request.idempotency_key
    if cr is None and key is None:
        return ()
    return run_keys(request.namespace, cr.cluster_uid if cr else None, cr.uid if cr else None, key)


def _bound(subject: str, text: str, limit: int) -> None:
    size = len(text.encode())
    if size > limit:
        raise InvalidError(subject, (Problem("", f"has {size:,} bytes; expected at most {limit:,}"),))


def _run_id(request: StartRequest) -> UUID:
    run_id = request.run_id or request.request_id
    if run_id.int & _VERSION != _SEVEN:  # uuid's own property takes a microsecond for it
        raise InvalidError(f"run {run_id}", (Problem("runId", "is not time-ordered; expected a UUID of version 7"),))
    return run_id
