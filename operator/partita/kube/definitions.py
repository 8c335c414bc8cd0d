"""The handler of WorkflowDefinition: every problem is listed, a valid spec becomes a version in PostgreSQL.

Invariant: a status is written once a generation, and only when it changes; an invalid spec leaves the version before it
deployed and says so. Deleting an object deletes its definition softly (runs go on), but only if no object of the name
exists at that moment, since a re-created one may be handled before the deletion of the old one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import kopf

from partita.domain.errors import InvalidError, NotFoundError, PartitaError, Problem, UnavailableError
from partita.engine.engine import Engine
from partita.engine.requests import Deployed
from partita.kube.client import KubeClient
from partita.kube.conditions import Condition, clip, keep_transitions, manifests
from partita.kube.events import News
from partita.kube.resources import DEFINITIONS
from partita.kube.retrying import retrying

log = logging.getLogger(__name__)

CREATED_BY: Final = "kubernetes/"
"""What ``created_by`` of a definition from an object begins with; its uid follows."""
PROBLEMS_SHOWN: Final = 50


class Definitions:
    """Takes in WorkflowDefinition objects. ``appeared`` is called after one was deployed."""

    def __init__(
        self,
        client: KubeClient,
        engine: Engine,
        appeared: Callable[[str, str], Awaitable[None]],
        *,
        retention: Callable[[str, str, Mapping[str, Any]], None],
        tell: Callable[[News], None],
    ) -> None:
        """``retention`` learns the spec of every definition; ``tell`` takes news for Events."""
        self._retention = retention
        self._tell = tell
        self._client = client
        self._engine = engine
        self._appeared = appeared
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def on_change(self, body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
        """kopf's handler of a new generation, and of every object at the start of an operator."""
        metadata, before = body["metadata"], body.get("status") or {}
        namespace, name = metadata["namespace"], metadata["name"]
        async with self._locks[namespace, name]:
            try:
                status = await self._deploy(metadata, dict(body.get("spec") or {}), before)
            except UnavailableError as error:
                raise kopf.TemporaryError(str(error), delay=15) from error
        if any(before.get(key) != value for key, value in status.items()):
            patch.status.update(status)
            self._tell(news_of(metadata, status))
        if status["problems"] is None:
            await self._appeared(namespace, name)

    async def on_event(self, event: Mapping[str, Any], **_: Any) -> None:
        """kopf's handler of every event: what it says of its runs' objects, and its deletion."""
        metadata, gone = event["object"]["metadata"], event["type"] == "DELETED"
        self._retention(metadata["namespace"], metadata["name"], {} if gone else event["object"].get("spec") or {})
        if not gone:
            return
        try:
            await retrying(lambda: self.gone(metadata["namespace"], metadata["name"]))
        except PartitaError as error:
            log.warning("WorkflowDefinition %s/%s: %s", metadata["namespace"], metadata["name"], error)

    async def gone(self, namespace: str, name: str) -> None:
        """Delete a definition if no object of its name exists."""
        async with self._locks[namespace, name]:
            try:
                await self._client.get(DEFINITIONS.path(namespace, name))
            except NotFoundError:
                await self._engine.delete_definition(namespace, name)

    async def _deploy(
        self, metadata: Mapping[str, Any], spec: dict[str, Any], before: Mapping[str, Any]
    ) -> dict[str, Any]:
        now = datetime.now(UTC)
        try:
            deployed = await retrying(
                lambda: self._engine.deploy(
                    metadata["namespace"], metadata["name"], spec, created_by=CREATED_BY + metadata["uid"]
                ),
                tries=8,
            )
        except InvalidError as error:
            return invalid_status(error.problems, metadata["generation"], before, now)
        return accepted_status(deployed, spec, metadata["generation"], before, now)


def news_of(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> News:
    """What is told of a definition whose status has changed."""
    accepted, ready = status["conditions"][:2]
    refused = accepted["status"] == "False"
    return News(
        kind=DEFINITIONS.kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        reason="Refused" if refused else "Accepted",
        message=f"{accepted['message']}; {ready['message']}" if refused else ready["message"],
        warning=refused,
        key=str(metadata["generation"]),
    )


def accepted_status(
    deployed: Deployed, spec: Mapping[str, Any], generation: int, before: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Status of a valid definition."""
    conditions = [
        Condition("Accepted", True, "Valid", "", now),
        Condition("Ready", True, "Deployed", f"version {deployed.version} is deployed", now),
    ]
    return {
        "observedGeneration": generation,
        "version": deployed.version,
        "hash": deployed.content_hash,
        "nodes": _count(spec),
        "problems": None,
        "conditions": keep_transitions(manifests(conditions, generation), before.get("conditions") or []),
    }


def invalid_status(
    problems: tuple[Problem, ...], generation: int, before: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Status of an invalid definition; the version before it, if any, stays deployed."""
    version = before.get("version")
    kept = f"version {version} stays deployed" if version else "no version is deployed"
    conditions = [
        Condition("Accepted", False, "Invalid", _words(problems), now),
        Condition("Ready", bool(version), "EarlierVersion" if version else "Invalid", kept, now),
    ]
    return {
        "observedGeneration": generation,
        "problems": [
            {"path": clip(problem.path, 1024), "message": clip(problem.message, 4096)}
            for problem in problems[:PROBLEMS_SHOWN]
        ],
        "conditions": keep_transitions(manifests(conditions, generation), before.get("conditions") or []),
    }


def _words(problems: tuple[Problem, ...]) -> str:
    more = f" (and {len(problems) - 1} more, see status.problems)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else "invalid"


def _count(spec: Mapping[str, Any]) -> int:
    """Nodes of a spec, those of subflows and finally included."""
    parts = [spec, spec.get("finally") or {}, *(spec.get("subflows") or ())]
    return sum(len(part.get("nodes") or ()) for part in parts)
