"""Applying rows of inboxes, and what becomes of those that cannot be applied.

Invariant: a row goes with its effects, in one transaction; one that fails has that counted on it, is tried again later,
and is given up after too many failures. A message to a run that has ended, or that will never exist, is dropped; one
to a run that is about to start waits, and one that is not its run's first waits for the others. Trade-off: the account
of failures takes a transaction of its own, so that it is never undone with what failed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import orjson

from partita.domain.errors import NotFoundError, OutdatedError, PartitaError, UnavailableError
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import Reply
from partita.engine import relay
from partita.engine.children import FINAL, Children, refusal
from partita.engine.coordinator import Coordinator
from partita.engine.fencing import STALE
from partita.engine.messages import KINDS, Delivery, delivery_of, row_of
from partita.engine.requests import StartReply
from partita.engine.starts import Starts
from partita.engine.turns import DeliveryRefusedError, EarlierFirstError
from partita.store import failures, fences
from partita.store.database import Connection, Database, Record
from partita.store.errors import boundary
from partita.store.writes import insert_messages

log = logging.getLogger(__name__)

_NOT_ITS_FAULT: Final = (UnavailableError, OutdatedError, EarlierFirstError)
"""Errors that are not the row's own: of the process, of the database, and of the row before it."""
Answer = StartReply | Reply | None


class Deliverer:
    """One process's deliveries."""

    def __init__(self, starts: Starts, children: Children, coordinator: Coordinator, database: Database) -> None:
        self._starts = starts
        self._children = children
        self._coordinator = coordinator
        self._sql = database.sql
        self._writer = database.dedicated("inbox", planner=False)

    async def close(self) -> None:
        """Give back the connection."""
        await self._writer.close()

    async def row(self, row: Record) -> Answer:
        """Apply a row (id, run_id, kind, body); raises its error after having counted it on the row."""
        if row["kind"] in KINDS:
            try:
                delivery = delivery_of(row["id"], row["run_id"], row["kind"], orjson.loads(row["body"]))
            except Exception as error:
                await self._count(row["id"], error, row["run_id"])
                raise
            return await self.message(delivery)
        try:
            return await self._relayed(row)
        except _NOT_ITS_FAULT:
            raise
        except Exception as error:
            final = isinstance(error, DeliveryRefusedError) and error.final
            await self._count(row["id"], error, row["run_id"], final=final)
            raise

    async def _relayed(self, row: Record) -> Answer:
        """A start or a signal of a caller's own transaction."""
        body = orjson.loads(row["body"])
        if row["kind"] == "start":
            return await self._starts.start(relay.start_request(body), inbox_id=row["id"])
        return await self._coordinator.inbox_row(row["id"], row["run_id"], relay.signal_event(body))

    async def message(self, delivery: Delivery) -> Answer:
        """Apply a message of a run; raises its error after having counted it on the row."""
        try:
            event = delivery.event
            if isinstance(event, ChildStart):
                return await self._start(delivery, event)
            return await self._coordinator.inbox_row(delivery.inbox_id, delivery.run_id, event)
        except _NOT_ITS_FAULT:
            raise
        except NotFoundError as error:
            return await self._without_run(delivery, error)
        except Exception as error:
            await self._count(delivery.inbox_id, error, _held_up(delivery))
            raise

    async def _start(self, delivery: Delivery, child: ChildStart) -> Answer:
        try:
            return await self._children.start(delivery, child)
        except FINAL as error:
            await self._refuse(delivery, child, error)
            return STALE

    async def _refuse(self, delivery: Delivery, child: ChildStart, error: PartitaError) -> None:
        """Tell the parent, in one transaction with the end of the row."""
        message = refusal(delivery, child, error)
        if message is None:
            log.warning("run %s: inbox row %d: a detached child: %s", delivery.run_id, delivery.inbox_id, error)
            await self._count(delivery.inbox_id, error, delivery.run_id, final=True)
            return
        row = row_of(message, delivery.namespace)
        async with self._writing() as connection:
            if not await fences.take_inbox(connection, self._sql, [delivery.inbox_id]):
                return
            (number,) = await insert_messages(connection, self._sql, [row], 0)
        self._coordinator.notices.tell_messages([Delivery(number, message.run_id, delivery.namespace, message.event)])

    async def _without_run(self, delivery: Delivery, error: NotFoundError) -> Answer:
        async with self._writing() as connection:
            if await failures.drop_undeliverable(connection, self._sql, delivery.inbox_id, delivery.run_id):
                return STALE
            await failures.fail_inbox(connection, self._sql, delivery.inbox_id, str(error))
        raise error

    async def _count(self, inbox_id: int, error: Exception, held_up: UUID, *, final: bool = False) -> None:
        """Put a failure on the row's account; once it is given up the status of the run that it holds up says so."""
        text = str(error) if isinstance(error, PartitaError) else f"{type(error).__name__}: {error}"
        async with self._writing() as connection:
            dead = await failures.fail_inbox(connection, self._sql, inbox_id, text, final=final)
        if not dead:
            return
        async with self._writing() as connection:
            shown = await failures.show_given_up(connection, self._sql, held_up)
        if shown:
            self._coordinator.notices.tell_projection()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Connection]:
        with boundary():
            async with self._writer.transaction() as connection:
                yield connection


def _held_up(delivery: Delivery) -> UUID:
    """The run that does not go on without this message: of a child's start the parent."""
    event = delivery.event
    return event.parent.run_id if isinstance(event, ChildStart) and event.parent is not None else delivery.run_id
