"""Conditions of all three kinds, as the Kubernetes API conventions want them.

Invariant: every condition of an object carries the generation that its status speaks of, also those that did not
change, since ``kubectl wait`` ignores a condition whose observedGeneration is behind. Pure: times come from the
caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

MESSAGE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. ``status`` None means Unknown."""

    type: str
    status: bool | None
    reason: str
    message: str
    since: datetime

    def manifest(self, generation: int) -> dict[str, Any]:
        """The condition as it stands in a status."""
        return {
            "type": self.type,
            "status": "Unknown" if self.status is None else str(self.status),
            "observedGeneration": generation,
            "lastTransitionTime": seconds(self.since),
            "reason": self.reason,
            "message": clip(self.message, MESSAGE_LIMIT),
        }


def manifests(conditions: Iterable[Condition], generation: int) -> list[dict[str, Any]]:
    """All conditions of an object, for one generation."""
    return [condition.manifest(generation) for condition in conditions]


def keep_transitions(new: list[dict[str, Any]], old: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The new conditions, each with its old transition time where its status is the same as before."""
    before = {(condition.get("type"), condition.get("status")): condition for condition in old}
    kept = []
    for condition in new:
        same = before.get((condition["type"], condition["status"]))
        time = same.get("lastTransitionTime") if same else None
        kept.append({**condition, "lastTransitionTime": time} if time else condition)
    return kept


def clip(text: str, limit: int) -> str:
    """The text, cut at ``limit`` characters with a mark."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def seconds(moment: datetime) -> str:
    """RFC 3339 in UTC, to the second, as Kubernetes writes its own times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def milliseconds(moment: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
