"""The database backend: every run of one installation, through the engine and its reads.

Invariant: what it changes goes through the coordinator like any other change; what it shows comes from the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from partita.cli.backend import NodeSummary, RunDetail, RunFilter, RunPage, RunSummary, Submitted
from partita.domain.errors import ConflictError, InvalidError, Problem
from partita.domain.manifest import parse_definition, parse_run
from partita.domain.payload import Json, Payload
from partita.domain.state.events import (
    CancelRequested,
    Event,
    Reply,
    ResumeRequested,
    SignalReceived,
    SuspendRequested,
)
from partita.domain.state.rows import TERMINAL, ErrorInfo, RunStatus
from partita.engine.engine import Engine
from partita.engine.manifests import controls_in, start_request
from partita.settings import Settings
from partita.store import reads, views

_BY = "cli"
_KINDS = ("WorkflowDefinition", "WorkflowRun")


class DatabaseBackend:
    """Runs as records of one schema."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    async def open(cls, settings: Settings) -> Self:
        """Use the database of the settings; raises UnavailableError when it cannot be reached."""
        return cls(await Engine.open(settings, application="partita-cli"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back connections."""
        await self._engine.close()

    async def submit(self, namespace: str, documents: Sequence[Mapping[str, Json]]) -> list[Submitted]:
        """Deploy definitions and start runs, in the order written; all are checked before the first is applied."""
        placed = [_placed(namespace, document) for document in documents]
        _check(placed)
        return [await self._put(document) for document in placed]

    async def get(self, namespace: str, run: str) -> RunDetail:
        """One run, with every node of its definition."""
        detail = await reads.get_run(self._engine.database, await self._id(namespace, run))
        version = await self._engine.resolve(detail.run.namespace, detail.run.definition, detail.run.version)
        nodes = _nodes(detail.nodes, list(version.definition.nodes))
        output = detail.run.output.value if detail.run.output is not None else None
        waiting = _waiting(detail)
        return RunDetail(run=_summary(detail.run, waiting), nodes=nodes, output=output, error=_error(detail.run.error))

    async def list(self, query: RunFilter) -> RunPage:
        """A page of runs, newest first."""
        chosen = views.RunFilter(
            namespace=query.namespace,
            definition=query.definition,
            statuses=tuple(RunStatus(phase) for phase in query.phases),
            tags=query.tags,
        )
        page = await reads.list_runs(self._engine.database, chosen, limit=query.limit, cursor=_cursor(query.cursor))
        waits = await reads.waiting(self._engine.database, [run.id for run in page.runs if run.status not in TERMINAL])
        runs = tuple(_summary(run, _words(waits.get(run.id))) for run in page.runs)
        return RunPage(runs=runs, cursor=str(page.cursor or ""))

    async def signal(self, namespace: str, run: str, name: str, payload: Json, signal_id: str, sender: str) -> str:
        """Send a signal; a refused one is an error."""
        event = SignalReceived(id=signal_id, name=name, payload=Payload.of(payload), sender=sender)
        reply = await self._apply(namespace, run, event)
        return "Already sent" if reply.outcome == "already_applied" else reply.details.get(signal_id, "Accepted")

    async def suspend(self, namespace: str, run: str, *, suspended: bool) -> None:
        """Suspend, or resume, a run."""
        await self._apply(namespace, run, SuspendRequested(by=_BY) if suspended else ResumeRequested(by=_BY))

    async def cancel(self, namespace: str, run: str, mode: str, reason: str) -> None:
        """Cancel a run."""
        await self._apply(
            namespace, run, CancelRequested(mode="Now" if mode == "Now" else "Graceful", reason=reason, by=_BY)
        )

    async def _apply(self, namespace: str, run: str, event: Event) -> Reply:
        reply = await self._engine.apply(await self._id(namespace, run), event)
        if reply.outcome == "refused":
            raise ConflictError(f"run {run}: {reply.reason}: {reply.message}", hint=f"partita get {run}")
        return reply

    async def _id(self, namespace: str, run: str) -> UUID:
        try:
            return UUID(run)
        except ValueError:
            return await reads.find_run(self._engine.database, namespace, run)

    async def _put(self, document: Mapping[str, Any]) -> Submitted:
        metadata = document["metadata"]
        kind, namespace, name = document["kind"], metadata["namespace"], metadata.get("name", "")
        if kind == "WorkflowDefinition":
            deployed = await self._engine.deploy(namespace, name, document["spec"], created_by=_BY)
            result = f"version {deployed.version} {'deployed' if deployed.created else 'unchanged'}"
            return Submitted(kind=kind, namespace=namespace, name=name, id="", result=result)
        run, problems = parse_run(document)
        if run is None:
            raise InvalidError(f"WorkflowRun {name}", problems)
        controls = controls_in(run, generation=1, by=_BY)
        reply = await self._engine.start(start_request(run, controls, namespace=namespace, by=_BY))
        result = "created" if reply.created else "unchanged"
        return Submitted(kind=kind, namespace=namespace, name=name, id=str(reply.run_id), result=result)


def _placed(namespace: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document in the namespace that it names, else in the one of the command line."""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return {**document, "metadata": {"namespace": namespace, **metadata}}


def _check(documents: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidError with the problems of all documents."""
    found: list[Problem] = []
    for document in documents:
        kind = document.get("kind")
        title = f"{kind} {document['metadata'].get('name', '')}"
        problems: tuple[Problem, ...]
        if kind not in _KINDS:
            problems = (Problem("kind", f"is {kind}; expected {' or '.join(_KINDS)}"),)
        else:
            problems = (parse_definition if kind == "WorkflowDefinition" else parse_run)(document)[1]
        found += [Problem(f"{title}: {problem.path}", problem.message) for problem in problems]
    if found:
        raise InvalidError("manifest", tuple(found), hint="partita lint FILE")


def _summary(run: views.RunView, waiting: str) -> RunSummary:
    return RunSummary(
        id=str(run.id),
        namespace=run.namespace,
        name=run.name,
        definition=run.definition,
        version=run.version,
        phase=run.status.value,
        progress=f"{run.done}/{run.total}",
        waiting=waiting,
        message=run.reason,
        created_at=run.created_at,
        finished_at=run.finished_at,
    )


def _nodes(begun: Sequence[views.NodeView], names: Sequence[str]) -> tuple[NodeSummary, ...]:
    """Every node in the definition's order; those that nothing has happened to are Pending."""
    known = {node.node: node for node in begun}
    return tuple(_node(name, known.get(name)) for name in names)


def _node(name: str, node: views.NodeView | None) -> NodeSummary:
    if node is None:
        return NodeSummary(name=name, state="Pending", attempt=0, message="")
    message = f"{node.error.type}: {node.error.message}" if node.error is not None else ""
    return NodeSummary(name=name, state=node.state, attempt=node.attempt, message=message)


def _waiting(detail: views.RunDetailView) -> str:
    if detail.waits:
        return f"event {detail.waits[0].name}"
    timers = [timer for timer in detail.timers if timer.node]
    return f"{timers[0].kind} {timers[0].node}" if timers else ""


def _words(waiting: views.WaitingView | None) -> str:
    return "" if waiting is None else f"{waiting.kind} {waiting.name}"


def _error(error: ErrorInfo | None) -> Json:
    if error is None:
        return None
    return {"type": error.type, "message": error.message, "details": error.details.value if error.details else None}


def _cursor(text: str | None) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidError(
            "--cursor", (Problem("", f"{text!r} is no cursor; expected what the page before ended with"),)
        ) from error
