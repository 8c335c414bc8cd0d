"""The engine's facade: everything that changes a run goes through it.

Purpose: one object for the operator, the workers, the CLI and the gateway, which all embed it. Invariant: each method
returns after its change was committed, or raises; a request that is sent again changes nothing twice. Trade-off: a
process that only wants one change opens a coordinator for it, which costs one connection and no server of our own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self
from uuid import UUID

from partita.domain.errors import PartitaError
from partita.domain.payload import Json
from partita.domain.state.events import Event, Reply
from partita.engine.children import Children
from partita.engine.coordinator import Coordinator
from partita.engine.courier import DRAIN, Courier
from partita.engine.definitions import Definitions
from partita.engine.deliverer import Deliverer
from partita.engine.many import ManyStarts
from partita.engine.notices import Notices
from partita.engine.requests import Deployed, Offer, Report, ReportReply, StartReply, StartRequest, Version
from partita.engine.starts import Starts
from partita.settings import Settings
from partita.store.database import Connection, Database, Record


class Engine:
    """A process's way to change runs."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.settings = settings
        self.database = database
        self.definitions = Definitions(database)
        self.coordinator = Coordinator(database, settings, self.definitions)
        self._starts = Starts(self.coordinator, self.definitions, settings, database)
        self._many = ManyStarts(self._starts, self.coordinator, settings.engine.batch_size)
        children = Children(self.coordinator, self.definitions, settings.limits.input_bytes)
        self._deliverer = Deliverer(self._starts, children, self.coordinator, database)
        self.courier = Courier(self._deliverer)
        self.notices.messages.append(self.courier.sent)

    @classmethod
    async def open(cls, settings: Settings, *, application: str = "partita") -> Self:
        """Begin to take requests; the database need not be reachable yet."""
        engine = cls(settings, await Database.open(settings.database, application=application))
        engine.coordinator.open()
        return engine

    async def close(self, *, drain: float = DRAIN) -> None:
        """Deliver the messages that this process's commits caused, at most ``drain`` seconds; commit what was accepted,
        refuse what comes later, and give back the connections.
        """
        await self.courier.close(drain=drain)
        await self.coordinator.close()
        await asyncio.gather(self._deliverer.close(), self.definitions.close(), self.database.close())

    @property
    def notices(self) -> Notices:
        """What committed batches tell this process's duties."""
        return self.coordinator.notices

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, request: StartRequest) -> StartReply:
        """Start a run, or find the one that this request started before.

        Raises InvalidInputError, DefinitionNotFoundError, ExpiredError and TooEarlyError (by the run id's time),
        IdempotencyKeyInUseError, ConflictError (another request has this run id) and UnavailableError.
        """
        return await self._starts.start(request)

    async def start_many(self, requests: Sequence[StartRequest]) -> list[StartReply | PartitaError]:
        """Start up to 10,000 runs in large transactions; the answers in the order of the requests.

        Each request is answered by itself, with what ``start`` would return or raise for it: one that is refused fails
        no other. Whoever hears no answer sends the same requests again. Raises InvalidError for too many.
        """
        return await self._many.start(requests)

    async def apply(self, run_id: UUID, event: Event) -> Reply:
        """Let something happen to a run: a signal or a control, all of which may be sent again.

        Raises NotFoundError when there is no such run, EngineError when the event cannot be decided or stored.
        """
        return await self.coordinator.apply(run_id, event)

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        """Record the end of an attempt; with an offer, the answer may carry the run's next task, already leased."""
        return await self.coordinator.report(report, offer)

    async def deploy(self, namespace: str, name: str, spec: Json, *, created_by: str = "") -> Deployed:
        """Store a definition and make it the deployed one; raises InvalidError with every problem of the spec."""
        return await self.definitions.deploy(namespace, name, spec, created_by=created_by)

    async def delete_definition(self, namespace: str, name: str) -> bool:
        """Refuse further starts; runs go on. False when there is no such definition."""
        return await self.definitions.delete(namespace, name)

    async def resolve(self, namespace: str, name: str, version: int | None = None) -> Version:
        """The deployed, or an exact, version; raises DefinitionNotFoundError."""
        return await self.definitions.resolve(namespace, name, version)

    async def signal_in(self, connection: Connection, run_id: UUID, signal: Event) -> None:
        """Send a signal as part of the caller's own transaction; it is delivered after that transaction commits."""
        await self._starts.signal_in(connection, run_id, signal)

    async def start_in(self, connection: Connection, request: StartRequest) -> UUID:
        """Start a run as part of the caller's own transaction; it begins after that transaction commits."""
        (run_id,) = await self._starts.start_in(connection, [request])
        return run_id

    async def start_many_in(self, connection: Connection, requests: Sequence[StartRequest]) -> list[UUID]:
        """Start up to 10,000 runs as part of the caller's own transaction, with one statement.

        Raises InvalidInputError for the first that could never be delivered; then none is put into the transaction.
        """
        return await self._many.start_in(connection, requests)

    async def deliver(self, row: Record) -> StartReply | Reply | None:
        """Apply a due row of ``run_inbox``; raises its error after having counted it on the row."""
        return await self._deliverer.row(row)
