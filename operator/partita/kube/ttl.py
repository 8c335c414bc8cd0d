"""How long a finished WorkflowRun object stays, and which of too many go first: pure rules.

The time is the run's own ``spec.ttlSecondsAfterFinished``, else that of its definition, else that of the
WorkflowEngine, else the operator's setting. Invariant: an object that a GitOps tool would create again goes by a time
of its own alone; defaults and numbers of runs to keep spare it. An object that took over a run which had ended before
has its time from its own beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from partita.kube.mirror import Seen

Place = tuple[str, str]
"""(namespace, name) of a definition."""


@dataclass(frozen=True, slots=True)
class Policy:
    """``spec.retention`` of a definition."""

    ttl_seconds: int | None = None
    keep: int | None = None
    """Finished objects of the definition that stay at most."""


def place_of(seen: Seen) -> Place:
    """The definition of an object."""
    return seen.namespace, seen.definition


def is_over(seen: Seen, now: datetime, default: timedelta | None, policy: Policy | None = None) -> bool:
    """Whether a finished object's time to live has passed."""
    if seen.finished_at is None:
        return False
    life = life_of(seen, default, policy)
    return life is not None and now >= max(seen.finished_at, seen.created_at or seen.finished_at) + life


def life_of(seen: Seen, default: timedelta | None, policy: Policy | None = None) -> timedelta | None:
    """How long an object stays after its end; None for ever, and where no ``default`` is known."""
    if seen.ttl_seconds is not None:
        return timedelta(seconds=seen.ttl_seconds)
    if seen.tracked:
        return None
    if policy is not None and policy.ttl_seconds is not None:
        return timedelta(seconds=policy.ttl_seconds)
    return default


def beyond(finished: Iterable[Seen], policies: Mapping[Place, Policy]) -> list[Seen]:
    """The objects that are more than their definition keeps: of each definition the ones that ended first."""
    limited = {place: policy.keep for place, policy in policies.items() if policy.keep is not None}
    if not limited:
        return []
    groups: defaultdict[Place, list[Seen]] = defaultdict(list)
    for seen in finished:
        place = place_of(seen)
        if place in limited and not seen.tracked:
            groups[place].append(seen)
    return [seen for place, group in groups.items() for seen in _oldest(group, len(group) - limited[place])]


def _oldest(group: list[Seen], count: int) -> list[Seen]:
    if count <= 0:
        return []
    return sorted(group, key=lambda seen: (seen.finished_at is not None and seen.finished_at, seen.uid))[:count]
