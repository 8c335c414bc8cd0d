"""The database backend: every run of one installation, through the engine and its reads.

Invariant: what it changes goes through the coordinator like any other change; what it shows comes from the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self
from uuid import UUID

from partita.cli.backend import NodeDetail, NodeQuery, RunDetail, RunList, RunQuery, RunTotal, Submitted
from partita.cli.clashes import refuse_clashes
from partita.cli.inspect import flow_of, read_node, read_run
from partita.cli.names import get_command, is_run_id
from partita.cli.nodes import require_nodes
from partita.cli.plan import Planned, in_order, planned
from partita.cli.shown import run_line, waits_listed
from partita.cli.who import person
from partita.domain.errors import ConflictError, InvalidError, NotFoundError, Problem
from partita.domain.model import Definition
from partita.domain.payload import Json, Payload
from partita.domain.places import shortened
from partita.domain.state.events import (
    CancelRequested,
    Event,
    Reply,
    ResumeRequested,
    SignalReceived,
    SuspendRequested,
)
from partita.domain.state.mailbox import ACCEPTED, CONSUMED, SHARED_MAILBOX
from partita.domain.state.rows import TERMINAL, RunStatus
from partita.engine.engine import Engine
from partita.engine.manifests import controls_in, start_request
from partita.engine.requests import PROTOCOL
from partita.settings import Settings
from partita.store import lists, reads, views
from partita.store.database import Database
from partita.store.migrations import require_protocol

_NAMESPACE = "default"
_LOOKED_AT = 500
"""Runs that are looked through for a name that the usual namespace does not have."""


class DatabaseBackend:
    """Runs as records of one schema."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._by = person()
        self._named: dict[tuple[str, str], UUID] = {}
        """What names meant when they were first said: whoever follows a run follows it to its end."""

    @classmethod
    async def open(cls, settings: Settings) -> Self:
        """Use the database of the settings.

        Raises UnavailableError when it cannot be reached, OutdatedError when only a newer program may work on it.
        """
        engine = await Engine.open(settings, application="partita-cli")
        try:
            await require_protocol(engine.database, PROTOCOL)
        except BaseException:
            await engine.close()
            raise
        return cls(engine)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back connections."""
        await self._engine.close()

    async def submit(self, namespace: str, documents: Sequence[Mapping[str, Json]]) -> list[Submitted]:
        """Deploy the definitions, then start the runs; all are checked before the first is applied."""
        plan = await planned(namespace or _NAMESPACE, documents, self._definition)
        await refuse_clashes(self._engine.database, plan)
        return await in_order(plan, self._put)

    async def _definition(self, namespace: str, name: str, version: int | None) -> Definition:
        return (await self._engine.resolve(namespace, name, version)).definition

    async def get(self, namespace: str, run: str) -> RunDetail:
        """One run, with every node of its definition and the children that it started."""
        return await read_run(self._engine, await self._id(namespace, run))

    async def node(self, namespace: str, run: str, query: NodeQuery) -> NodeDetail:
        """One node of a run."""
        return await read_node(self._engine, await self._id(namespace, run), query)

    async def list(self, query: RunQuery) -> RunList:
        """A page of runs, newest first."""
        database = self._engine.database
        page = await lists.list_runs(
            database, await self._filter(query), limit=query.limit, cursor=_cursor(query.cursor)
        )
        waits = await reads.waiting(database, [run.id for run in page.runs if run.status not in TERMINAL])
        runs = tuple(run_line(run, waits_listed(waits.get(run.id, ()))) for run in page.runs)
        return RunList(runs=runs, cursor=str(page.cursor or ""))

    async def count(self, query: RunQuery) -> RunTotal:
        """How many runs fit, up to 10,000."""
        found = await lists.count_runs(self._engine.database, await self._filter(query))
        return RunTotal(count=found.count, exact=found.exact)

    async def _filter(self, query: RunQuery) -> views.RunFilter:
        return views.RunFilter(
            namespace=None if query.all_namespaces or query.parent else query.namespace or None,
            definition=query.definition,
            statuses=tuple(RunStatus(phase) for phase in query.phases),
            tags=query.tags,
            attributes=query.attributes or None,
            started_by=query.started_by,
            created_from=query.since,
            created_before=query.before,
            parent=await self._id(query.namespace, query.parent) if query.parent else None,
        )

    async def signal(self, namespace: str, run: str, name: str, payload: Json, signal_id: str, sender: str) -> str:
        """Send a signal; a refused one is an error."""
        event = SignalReceived(id=signal_id, name=name, payload=Payload.of(payload), sender=sender)
        reply = await self._engine.apply(await self._id(namespace, run), event)
        if reply.outcome == "refused":
            raise _signal_refused(namespace, run, name, reply)
        if reply.outcome == "already_applied":
            return "Already sent"
        return reply.reason if reply.reason in (ACCEPTED, CONSUMED) else ACCEPTED

    async def suspend(self, namespace: str, run: str, *, suspended: bool) -> bool:
        """Suspend, or resume, a run."""
        await self._apply(namespace, run, SuspendRequested(by=self._by) if suspended else ResumeRequested(by=self._by))
        return True

    async def cancel(self, namespace: str, run: str, mode: str, reason: str) -> bool:
        """Cancel a run."""
        chosen = CancelRequested(mode="Now" if mode == "Now" else "Graceful", reason=reason, by=self._by)
        await self._apply(namespace, run, chosen)
        return True

    async def cancel_nodes(self, namespace: str, run: str, nodes: Sequence[str], reason: str) -> bool:
        """Cancel the unsettled ones of these nodes; a name that the run does not have is an error."""
        identity = await self._id(namespace, run)
        detail = await reads.get_run(self._engine.database, identity)
        require_nodes(run, namespace, nodes, await flow_of(self._engine, detail))
        await self._apply(namespace, str(identity), CancelRequested(nodes=tuple(nodes), reason=reason, by=self._by))
        return True

    async def _apply(self, namespace: str, run: str, event: Event) -> Reply:
        reply = await self._engine.apply(await self._id(namespace, run), event)
        if reply.outcome == "refused":
            raise ConflictError(f"run {run}: {reply.reason}: {reply.message}", hint=get_command(run, namespace))
        return reply

    async def _id(self, namespace: str, run: str) -> UUID:
        name = (namespace, run)
        if name not in self._named:
            self._named[name] = await run_id(self._engine.database, namespace, run)
        return self._named[name]

    async def _put(self, planned: Planned) -> Submitted:
        metadata = planned.body["metadata"]
        kind, namespace, name = planned.body["kind"], planned.namespace, metadata.get("name", "")
        if planned.run is None:
            deployed = await self._engine.deploy(namespace, name, planned.body["spec"], created_by=self._by)
            result = f"version {deployed.version} {'deployed' if deployed.created else 'unchanged'}"
            return Submitted(kind=kind, namespace=namespace, name=name, id="", result=result)
        controls = controls_in(planned.run, generation=1, by=self._by)
        reply = await self._engine.start(start_request(planned.run, controls, namespace=namespace, by=self._by))
        result = "created" if reply.created else "unchanged"
        return Submitted(kind=kind, namespace=namespace, name=name, id=str(reply.run_id), result=result)


def _signal_refused(namespace: str, run: str, name: str, reply: Reply) -> ConflictError:
    """Why, and where a signal for a subflow has to go: the message ends with the run whose mailbox it shares."""
    shared = reply.reason == SHARED_MAILBOX
    hint = f"partita signal {reply.message.split()[-1]} {name}" if shared else get_command(run, namespace)
    return ConflictError(f"run {run}: signal {name}: {reply.reason}: {reply.message}", hint=hint)


async def run_id(database: Database, namespace: str, run: str) -> UUID:
    """The id of a run that a person named by its id or by its object's name; raises NotFoundError."""
    if is_run_id(run):
        return UUID(run)
    try:
        return await reads.find_run(database, namespace or _NAMESPACE, run)
    except NotFoundError as error:
        place = "" if namespace else await _only_place(database, run)
        if not place:
            raise
        message = f"run {_NAMESPACE}/{run}: does not exist; one of this name is in namespace {place}"
        raise NotFoundError(message, hint=get_command(run, place)) from error


async def _only_place(database: Database, name: str) -> str:
    """The namespace that has runs of this name, if among the newest runs only one has; else empty."""
    newest = await lists.list_runs(database, views.RunFilter(), limit=_LOOKED_AT)
    places = {run.namespace for run in newest.runs if run.name == name}
    return places.pop() if len(places) == 1 else ""


def _cursor(text: str | None) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidError(
            "--cursor", (Problem("", f"{shortened(text)!r} is no cursor; expected what the page before ended with"),)
        ) from error
