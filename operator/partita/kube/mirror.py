"""What the operator remembers of every WorkflowRun object that it has seen.

Purpose: the projector patches without reading first, the handler skips what it has applied, and resync compares without
listing bodies. Invariant: this is a cache of the API server's state; losing or mistaking an entry costs one more GET or
one more idempotent request, never a wrong status. Trade-off: about half a kilobyte an object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

TRACKED: Final = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/")
"""Marks of tools that create an object again when it vanishes: no default time to live deletes such an object."""

UNSUPPORTED: Final = ("hold", "retry")
"""Controls whose meaning comes with a later version; the status says that they have no effect."""


@dataclass(slots=True)
class Seen:
    """The latest known state of one object."""

    uid: str
    namespace: str
    name: str
    resource_version: int = 0
    generation: int = 0
    """metadata.generation of the latest event."""
    applied: int = 0
    """Generation that was handed to the engine successfully."""
    waiting: bool = False
    """Its start was refused and is to be tried again."""
    run_id: str = ""
    revision: int = 0
    """status.revision."""
    observed: int = 0
    """status.observedGeneration."""
    signals: tuple[str, ...] = ()
    """Ids in spec.signals."""
    created_at: datetime | None = None
    finished_at: datetime | None = None
    ttl_seconds: int | None = None
    tracked: bool = False
    definition: str = ""
    phase: str = ""
    """status.phase."""
    waiting_for: str = ""
    """status.waitingFor."""
    deleted: bool = False
    """Its deletion was ordered; it only has to vanish."""
    unsupported: tuple[str, ...] = ()
    """Controls in the spec that this version does not know."""

    def take(self, body: Mapping[str, Any]) -> None:
        """Learn from a body, unless a newer one is known."""
        metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
        version = _number(metadata.get("resourceVersion"))
        if version < self.resource_version:
            return
        self.resource_version = version
        self.generation = metadata.get("generation") or 0
        self.run_id = status.get("runId") or ""
        self.revision = status.get("revision") or 0
        self.observed = status.get("observedGeneration") or 0
        self.signals = tuple(signal["id"] for signal in spec.get("signals") or ())
        self.created_at = _time(metadata.get("creationTimestamp"))
        self.finished_at = _time(status.get("finishedAt"))
        self.ttl_seconds = spec.get("ttlSecondsAfterFinished")
        self.definition = sys.intern((spec.get("definitionRef") or {}).get("name") or "")
        self.phase = sys.intern(status.get("phase") or "")
        self.waiting_for = sys.intern(status.get("waitingFor") or "")
        self.unsupported = tuple(control for control in UNSUPPORTED if spec.get(control))
        marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
        self.tracked = any(mark.startswith(TRACKED) for mark in marks)


class Mirror:
    """All objects by uid."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._signalled: dict[str, Seen] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[Seen]:
        return iter(tuple(self._seen.values()))

    def get(self, uid: str) -> Seen | None:
        """What is known of an object."""
        return self._seen.get(uid)

    def observe(self, body: Mapping[str, Any]) -> Seen:
        """Take in a body from the API and return the entry."""
        metadata = body["metadata"]
        seen = self._seen.get(metadata["uid"])
        if seen is None:
            seen = Seen(metadata["uid"], metadata.get("namespace") or "", metadata["name"])
            self._seen[seen.uid] = seen
        seen.take(body)
        if seen.run_id and seen.signals:
            self._signalled[seen.run_id] = seen
        elif seen.run_id:
            self._signalled.pop(seen.run_id, None)
        return seen

    def signals(self, run_id: str) -> tuple[str, ...]:
        """Ids of the signals in the spec of a run's object; empty where none is known."""
        seen = self._signalled.get(run_id)
        return seen.signals if seen else ()

    def forget(self, uid: str) -> Seen | None:
        """The object is gone; the answer is what was known of it."""
        seen = self._seen.pop(uid, None)
        if seen is not None:
            self._signalled.pop(seen.run_id, None)
        return seen


def _number(text: object) -> int:
    """A resourceVersion as a number; 0 where it is none (then every body counts as new)."""
    return int(text) if isinstance(text, str) and text.isdigit() else 0


def _time(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
