"""The cluster backend: runs as WorkflowRun objects, through the Kubernetes API only.

Invariant: what it shows is what the operator wrote to the objects' status, and what it changes are the controls in
their spec, exactly as a person would with kubectl. It needs no database access, so a person's own rights in the cluster
decide what it may do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from partita.cli.backend import (
    NodeSummary,
    RunDetail,
    RunFilter,
    RunPage,
    RunSummary,
    Submitted,
)
from partita.domain.errors import InvalidError, NotFoundError, Problem
from partita.domain.payload import Json
from partita.kube.client import JSON_PATCH, KubeClient
from partita.kube.connection import load_connection
from partita.kube.resources import DEFINITIONS, RUNS, Resource

_RESOURCES = {resource.kind: resource for resource in (DEFINITIONS, RUNS)}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MANAGER = "partita-cli"


class ClusterBackend:
    """Runs as objects of one cluster."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    @classmethod
    async def open(cls, kubeconfig: str, context: str) -> ClusterBackend:
        """Use the credentials of a kubeconfig; raises UnavailableError when there are none."""
        path = Path(kubeconfig) if kubeconfig else None
        load_connection(path, context or None)
        return cls(KubeClient(lambda: load_connection(path, context or None)))

    async def close(self) -> None:
        """Give back connections."""
        await self._client.close()

    async def submit(self, namespace: str, documents: Sequence[Mapping[str, Json]]) -> list[Submitted]:
        """Apply definitions (server-side) and create runs; every document is tried as a dry run first."""
        planned = [self._plan(namespace, document) for document in documents]
        for resource, body in planned:
            await self._put(resource, body, dry_run=True)
        return [await self._put(resource, body, dry_run=False) for resource, body in planned]

    async def get(self, namespace: str, run: str) -> RunDetail:
        """One run, by its object's name or by its run id."""
        return _detail(await self._find(namespace, run))

    async def list(self, query: RunFilter) -> RunPage:
        """The newest runs; the API server filters by definition and by one phase, and knows no order."""
        if query.tags:
            raise InvalidError("list", (Problem("--tag", "needs the database"),), hint="--database-url URL")
        if query.cursor:
            raise InvalidError("list", (Problem("--cursor", "needs the database"),), hint="--limit 1000")
        found: list[RunSummary] = []
        async for page in self._client.pages(RUNS.path(query.namespace or ""), fields=_selector(query)):
            found += [run for run in map(_summary, page) if not query.phases or run.phase in query.phases]
        found.sort(key=_newest_first, reverse=True)
        return RunPage(runs=tuple(found[: query.limit]))

    async def signal(self, namespace: str, run: str, name: str, payload: Json, signal_id: str, sender: str) -> str:
        """Append to ``spec.signals``; a signal of that id already there counts as sent."""
        del sender  # the operator records the object as the sender; who patched it is in the API server's audit log
        item = await self._find(namespace, run)
        if any(signal["id"] == signal_id for signal in item["spec"].get("signals") or []):
            return "Sent"
        signal = {"id": signal_id, "name": name, **({} if payload is None else {"payload": payload})}
        await self._client.patch(_path(item), [{"op": "add", "path": "/spec/signals/-", "value": signal}], JSON_PATCH)
        return "Sent"

    async def suspend(self, namespace: str, run: str, *, suspended: bool) -> None:
        """Set ``spec.suspend``."""
        item = await self._find(namespace, run)
        await self._client.patch(_path(item), {"spec": {"suspend": suspended}})

    async def cancel(self, namespace: str, run: str, mode: str, reason: str) -> None:
        """Set ``spec.cancel``."""
        item = await self._find(namespace, run)
        cancel = {"mode": mode, **({"reason": reason} if reason else {})}
        await self._client.patch(_path(item), {"spec": {"cancel": cancel}})

    async def _find(self, namespace: str, run: str) -> dict[str, Any]:
        """The object of a run; a run id is looked up among the namespace's runs."""
        if _UUID.fullmatch(run):
            async for page in self._client.pages(RUNS.path(namespace)):
                for item in page:
                    if (item.get("status") or {}).get("runId") == run:
                        return item
        else:
            try:
                return await self._client.get(RUNS.path(namespace, run))
            except NotFoundError:
                pass
        raise NotFoundError(f"run {namespace}/{run}: not found", hint=f"partita list -n {namespace}")

    def _plan(self, namespace: str, document: Mapping[str, Json]) -> tuple[Resource, dict[str, Any]]:
        kind = str(document.get("kind"))
        if kind not in _RESOURCES:
            message = f"is {kind}; expected {' or '.join(_RESOURCES)}"
            raise InvalidError("manifest", (Problem("kind", message),), hint="kubectl apply -f FILE")
        metadata = {"namespace": namespace, **(document.get("metadata") or {})}
        return _RESOURCES[kind], {**document, "metadata": metadata}

    async def _put(self, resource: Resource, body: dict[str, Any], *, dry_run: bool) -> Submitted:
        metadata = body["metadata"]
        if resource is DEFINITIONS or metadata.get("name"):
            path = resource.path(metadata["namespace"], metadata.get("name", ""))
            item = await self._client.apply(path, body, _MANAGER, dry_run=dry_run)
        else:
            item = await self._client.create(resource.path(metadata["namespace"]), body, dry_run=dry_run)
        status = item.get("status") or {}
        return Submitted(
            kind=resource.kind,
            namespace=item["metadata"]["namespace"],
            name=item["metadata"]["name"],
            id=status.get("runId", ""),
            result="created" if item["metadata"].get("generation") == 1 else "applied",
        )


def _path(item: Mapping[str, Any]) -> str:
    return RUNS.path(item["metadata"]["namespace"], item["metadata"]["name"])


def _selector(query: RunFilter) -> str:
    parts = []
    if query.definition:
        parts.append(f"spec.definitionRef.name={query.definition}")
    if len(query.phases) == 1:
        parts.append(f"status.phase={query.phases[0]}")
    return ",".join(parts)


def _newest_first(run: RunSummary) -> tuple[str, str]:
    return (run.created_at.isoformat() if run.created_at else "", run.name)


def _summary(item: Mapping[str, Any]) -> RunSummary:
    status = item.get("status") or {}
    metadata = item["metadata"]
    return RunSummary(
        id=status.get("runId", ""),
        namespace=metadata["namespace"],
        name=metadata["name"],
        definition=item["spec"]["definitionRef"]["name"],
        version=status.get("version"),
        phase=status.get("phase") or "Pending",
        progress=status.get("progress", ""),
        waiting=status.get("waitingFor", ""),
        message=status.get("message", ""),
        created_at=_time(metadata.get("creationTimestamp")),
        finished_at=_time(status.get("finishedAt")),
    )


def _detail(item: Mapping[str, Any]) -> RunDetail:
    status = item.get("status") or {}
    nodes = tuple(
        NodeSummary(
            name=node["name"], state=node["state"], attempt=node.get("attempt", 0), message=node.get("message", "")
        )
        for node in status.get("nodes") or []
    )
    return RunDetail(run=_summary(item), nodes=nodes, output=status.get("output"), error=None)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
