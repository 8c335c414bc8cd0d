"""The cluster backend: runs as WorkflowRun objects, through the Kubernetes API only.

Invariant: what it shows is what the operator wrote to the objects' status, and what it changes are the controls in
their spec, exactly as a person would with kubectl. It needs no database access, so a person's own rights in the cluster
decide what it may do.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from partita.cli.backend import NodeDetail, NodeQuery, RunDetail, RunLine, RunList, RunQuery, RunTotal, Submitted
from partita.cli.names import get_command, is_run_id
from partita.cli.nodes import require_nodes
from partita.cli.objects import detail_of, newest_first, readable, run_line, status_of
from partita.cli.plan import Planned, in_order, planned
from partita.domain.errors import (
    ConflictError,
    DefinitionNotFoundError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    Problem,
    UnavailableError,
)
from partita.domain.model import Definition
from partita.domain.payload import Json
from partita.kube.client import JSON_PATCH, KubeClient
from partita.kube.connection import current_namespace, load_connection
from partita.kube.resources import DEFINITIONS, RUNS, Resource

_RESOURCES = {resource.kind: resource for resource in (DEFINITIONS, RUNS)}
_MANAGER = "partita-cli"
_ANSWER_SECONDS = 5.0
"""How long a command waits for the operator to answer a change; what was sent stays sent."""
_PAUSE_SECONDS = 0.1
_TRIES = 5
"""Tries of a change that somebody else's change of the object came before."""
_ONLY_DATABASE: tuple[tuple[str, Callable[[RunQuery], object]], ...] = (
    ("--tag", lambda query: query.tags),
    ("--attribute", lambda query: query.attributes),
    ("--started-by", lambda query: query.started_by),
    ("--since", lambda query: query.since),
    ("--before", lambda query: query.before),
    ("--parent", lambda query: query.parent),
    ("--cursor", lambda query: query.cursor),
)
"""What no object can answer, since child runs have none and the API server compares no such fields."""
Object = dict[str, Any]


class ClusterBackend:
    """Runs as objects of one cluster."""

    def __init__(self, client: KubeClient, namespace: str = "") -> None:
        """``namespace``: where a command looks that names none; empty is ``default``."""
        self._client = client
        self._namespace = namespace or "default"

    @classmethod
    async def open(cls, kubeconfig: str, context: str) -> ClusterBackend:
        """Use the credentials of a kubeconfig; raises UnavailableError when there are none."""
        place = (Path(kubeconfig) if kubeconfig else None, context or None)
        load_connection(*place)
        return cls(KubeClient(lambda: load_connection(*place)), current_namespace(*place))

    async def close(self) -> None:
        """Give back connections."""
        await self._client.close()

    async def submit(self, namespace: str, documents: Sequence[Mapping[str, Json]]) -> list[Submitted]:
        """Apply definitions, then create runs: all are checked here, then tried by the API server, then applied."""
        plan = await planned(namespace or self._namespace, documents, self._definition)
        for each in plan:
            await self._put(each.body, dry_run=True)
        return await in_order(plan, self._apply)

    async def _apply(self, planned: Planned) -> Submitted:
        return _submitted(*await self._put(planned.body, dry_run=False))

    async def _definition(self, namespace: str, name: str, version: int | None = None) -> Definition | None:
        """What an object says; None for another version than its own, and where the person may not read it."""
        try:
            item = await self._client.get(DEFINITIONS.path(namespace, name))
        except ForbiddenError:
            return None
        except NotFoundError as error:
            if _no_such_kind(error):
                raise _not_installed() from error
            words = f"WorkflowDefinition {namespace}/{name}: does not exist"
            raise DefinitionNotFoundError(words, hint=f"kubectl get wfd -n {namespace}") from error
        return readable(item, version)

    async def get(self, namespace: str, run: str) -> RunDetail:
        """One run, by its object's name or by its run id."""
        return detail_of(await self._find(namespace, run))

    async def node(self, namespace: str, run: str, query: NodeQuery) -> NodeDetail:
        """What only the database knows."""
        del namespace, run, query
        hint = "partita get RUN --node NAME --database-url URL"
        raise InvalidError("get", (Problem("--node", "needs the database"),), hint=hint)

    async def list(self, query: RunQuery) -> RunList:
        """The newest runs; the API server filters by definition and by one phase, and knows no order."""
        found = await self._matching(query)
        found.sort(key=newest_first, reverse=True)
        return RunList(runs=tuple(found[: query.limit]))

    async def count(self, query: RunQuery) -> RunTotal:
        """How many objects fit: the API server hands all of them out."""
        return RunTotal(count=len(await self._matching(query)), exact=True)

    async def _matching(self, query: RunQuery) -> builtins.list[RunLine]:
        for option, asked in _ONLY_DATABASE:
            if asked(query):
                hint = "partita list --limit 1000" if option == "--cursor" else "partita list --database-url URL"
                raise InvalidError("list", (Problem(option, "needs the database"),), hint=hint)
        found: builtins.list[RunLine] = []
        path = RUNS.path("" if query.all_namespaces else query.namespace or self._namespace)
        try:
            async for page in self._client.pages(path, fields=_selector(query)):
                found += [run for run in map(run_line, page) if not query.phases or run.phase in query.phases]
        except NotFoundError as error:
            raise _not_installed() from error
        return found

    async def signal(self, namespace: str, run: str, name: str, payload: Json, signal_id: str, sender: str) -> str:
        """Append to ``spec.signals`` and wait a moment for the operator's answer."""
        del sender  # the operator records the object as the sender; who patched it is in the API server's audit log
        item = await self._find(namespace, run)
        if _signal(item["spec"], signal_id) or _signal(status_of(item), signal_id):
            return "Already sent"
        _require_unfinished(item, run)
        signal = {"id": signal_id, "name": name, **({} if payload is None else {"payload": payload})}
        await self._client.patch(_path(item), [{"op": "add", "path": "/spec/signals/-", "value": signal}], JSON_PATCH)
        seen = await self._answer(item, lambda status: _signal(status, signal_id) is not None)
        answer = _signal(status_of(seen), signal_id) if seen else None
        if answer is not None and answer["state"] == "Refused":
            raise ConflictError(
                f"run {run}: signal {name}: refused: {answer.get('message', '')}", hint=get_command(run, namespace)
            )
        return str(answer["state"]) if answer is not None else "Sent"

    async def suspend(self, namespace: str, run: str, *, suspended: bool) -> bool:
        """Set ``spec.suspend``, and see in the status that it took effect.

        Controls act when they change: a spec that has the value already, of a run that was changed elsewhere since,
        is turned to the other value first. Raises ConflictError when the run does not show what was asked.
        """
        item = await self._find(namespace, run)
        _require_unfinished(item, run)
        if bool(item["spec"].get("suspend")) is suspended:
            seen = await self._observed(item)
            if seen is None or _shows(seen, suspended=suspended):
                return seen is not None
            _require_unfinished(seen, run)
            if await self._patched(item, {"suspend": not suspended}) is None:
                raise _unanswered(run, suspended=suspended)
        seen = await self._patched(item, {"suspend": suspended})
        if seen is not None and not _shows(seen, suspended=suspended):
            _require_unfinished(seen, run)
            raise ConflictError(
                f"run {run}: spec.suspend is {str(suspended).lower()}, but the run is {run_line(seen).phase}",
                hint=f"partita {'suspend' if suspended else 'resume'} {run}",
            )
        return seen is not None

    async def cancel(self, namespace: str, run: str, mode: str, reason: str) -> bool:
        """Set ``spec.cancel``; a run that is cancelled already stays so."""
        item = await self._find(namespace, run)
        if status_of(item).get("phase") == "Cancelled":
            return True
        return await self._control(namespace, run, {"cancel": {"mode": mode, **({"reason": reason} if reason else {})}})

    async def cancel_nodes(self, namespace: str, run: str, nodes: Sequence[str], reason: str) -> bool:
        """Add to ``spec.cancelNodes``, which only grows; guarded, so that nobody else's names are lost."""
        if reason:
            problem = Problem(
                "--reason", "a WorkflowRun object has no field for why nodes are cancelled; expected --node alone"
            )
            raise InvalidError(f"run {run}", (problem,))
        await self._require_nodes(namespace, run, nodes)
        for _ in range(_TRIES - 1):
            try:
                return await self._add_nodes(namespace, run, nodes)
            except ConflictError as error:
                if isinstance(error, RunFinishedError):
                    raise
        return await self._add_nodes(namespace, run, nodes)

    async def _require_nodes(self, namespace: str, run: str, nodes: Sequence[str]) -> None:
        """Raise NotFoundError for a name that the definition does not have, where the version is known."""
        item = await self._find(namespace, run)
        _require_unfinished(item, run)
        place = (item["metadata"]["namespace"], item["spec"]["definitionRef"]["name"])
        try:
            flow = await self._definition(*place, status_of(item).get("version"))
        except NotFoundError:
            return  # deleted since, or deployed without an object
        if flow is not None:
            require_nodes(run, namespace, nodes, flow)

    async def _add_nodes(self, namespace: str, run: str, nodes: Sequence[str]) -> bool:
        item = await self._find(namespace, run)
        _require_unfinished(item, run)
        present = item["spec"].get("cancelNodes") or []
        body = {
            "metadata": {"resourceVersion": item["metadata"]["resourceVersion"]},
            "spec": {"cancelNodes": [*dict.fromkeys((*present, *nodes))]},
        }
        return await self._observed(await self._client.patch(_path(item), body)) is not None

    async def _control(self, namespace: str, run: str, spec: Json) -> bool:
        item = await self._find(namespace, run)
        _require_unfinished(item, run)
        return await self._patched(item, spec) is not None

    async def _patched(self, item: Object, spec: Json) -> Object | None:
        """Merge into the spec and wait for the operator; None when it does not answer in time."""
        return await self._observed(await self._client.patch(_path(item), {"spec": spec}))

    async def _observed(self, item: Object) -> Object | None:
        """The object once its status speaks of this generation or a later one."""
        generation = item["metadata"]["generation"]
        return await self._answer(item, lambda status: int(status.get("observedGeneration", 0)) >= generation)

    async def _answer(self, item: Object, answered: Callable[[Mapping[str, Any]], bool]) -> Object | None:
        """The object once its status says so; None after a bounded wait, or when it is gone."""
        loop = asyncio.get_running_loop()
        end = loop.time() + _ANSWER_SECONDS
        while loop.time() < end:
            try:
                seen = await self._client.get(_path(item))
            except NotFoundError:
                return None
            if answered(status_of(seen)):
                return seen
            await asyncio.sleep(_PAUSE_SECONDS)
        return None

    async def _find(self, namespace: str, run: str) -> Object:
        """The object of a run; a run id is looked up among the namespace's runs. Raises NotFoundError."""
        place = namespace or self._namespace
        missing = NotFoundError(f"run {place}/{run}: does not exist", hint=f"partita list -n {place}")
        try:
            if not is_run_id(run):
                return await self._client.get(RUNS.path(place, run))
            async for page in self._client.pages(RUNS.path(place)):
                for item in page:
                    if status_of(item).get("runId") == run.lower():
                        return item
        except NotFoundError as error:
            raise (_not_installed() if _no_such_kind(error) else missing) from error
        raise missing

    async def _put(self, body: Object, *, dry_run: bool) -> tuple[Object | None, Object]:
        """Apply one object; returns it as it was before (None when it is new) and as it is now."""
        resource, metadata = _RESOURCES[body["kind"]], body["metadata"]
        namespace, name = metadata["namespace"], metadata.get("name", "")
        try:
            if not name:
                return None, await self._client.create(resource.path(namespace), body, dry_run=dry_run)
            before = await self._present(resource, namespace, name)
            return before, await self._client.apply(resource.path(namespace, name), body, _MANAGER, dry_run=dry_run)
        except NotFoundError as error:
            raise (_not_installed() if _no_such_kind(error) else error) from error

    async def _present(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource.path(namespace, name))
        except NotFoundError:
            return None


def _submitted(before: Object | None, item: Object) -> Submitted:
    metadata = item["metadata"]
    if before is None:
        result = "created"
    else:
        result = "unchanged" if before["metadata"]["generation"] == metadata["generation"] else "changed"
    return Submitted(
        kind=item["kind"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        id=status_of(item).get("runId") or "",
        result=result,
    )


def _not_installed() -> NotFoundError:
    return NotFoundError("kubernetes: the cluster has no WorkflowRun kind", hint="kubectl apply -f crds/")


def _no_such_kind(error: NotFoundError) -> bool:
    """Whether the API server knows the path at all; about an object that is missing it says more."""
    return "page not found" in error.message


class RunFinishedError(ConflictError):
    """The run has ended; trying again cannot help."""


def _require_unfinished(item: Object, run: str) -> None:
    summary = run_line(item)
    if summary.finished:
        hint = get_command(run, summary.namespace)
        raise RunFinishedError(f"run {run}: RunFinished: the run has ended: {summary.phase}", hint=hint)


def _shows(item: Object, *, suspended: bool) -> bool:
    """Whether the status is what ``spec.suspend`` asks for; a run that has not begun obeys the spec when it begins."""
    status = status_of(item)
    return not status.get("runId") or (status.get("phase") == "Suspended") is suspended


def _unanswered(run: str, *, suspended: bool) -> UnavailableError:
    return UnavailableError(
        f"run {run}: spec.suspend was {str(suspended).lower()} already without effect; it is "
        f"{str(not suspended).lower()} now, but the operator has not answered",
        hint=f"partita {'suspend' if suspended else 'resume'} {run}",
    )


def _signal(holder: Mapping[str, Any], signal_id: str) -> Mapping[str, Any] | None:
    """The signal of this id in a spec or a status."""
    return next((signal for signal in holder.get("signals") or () if signal["id"] == signal_id), None)


def _path(item: Mapping[str, Any]) -> str:
    return RUNS.path(item["metadata"]["namespace"], item["metadata"]["name"])


def _selector(query: RunQuery) -> str:
    parts = []
    if query.definition:
        parts.append(f"spec.definitionRef.name={query.definition}")
    if len(query.phases) == 1:
        parts.append(f"status.phase={query.phases[0]}")
    return ",".join(parts)
