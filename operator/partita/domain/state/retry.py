"""Retry arithmetic: which tier takes a failure, and how long to wait.

Invariant: the same run, node and attempt always get the same delay, since the jitter comes from a hash of their names
and not from a random source; a decision made twice is the same decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Final
from uuid import UUID

from partita.domain.error_types import matches
from partita.domain.model import Tier
from partita.domain.state.rows import ErrorInfo

LOST: Final = "lost"
"""Key of ``TaskRow.retries`` that counts lost leases."""
ASKED: Final = "asked"
"""Key of ``TaskRow.retries`` that counts retries asked for by a worker without a tier."""

UNKNOWN: Final = "unknown"
"""Key of ``TaskRow.retries`` that counts attempts whose worker did not know the task's type."""

LONGEST_MS: Final = 10 * 365 * 86_400_000
"""The longest delay that a worker may ask for: ten years."""

ASKED_TIER: Final = Tier(
    match=(), when=None, max_retries=0, initial_delay_ms=1_000, multiplier=2.0, max_delay_ms=300_000,
    max_elapsed_ms=None, jitter=0.2,
)  # fmt: skip  # reads as a row of the table of defaults
"""Backoff of retries that a worker asked for without saying when; its count is a limit of the engine."""

UNKNOWN_TIER: Final = Tier(
    match=(), when=None, max_retries=0, initial_delay_ms=1_000, multiplier=2.0, max_delay_ms=30_000,
    max_elapsed_ms=None, jitter=0.0,
)  # fmt: skip  # as above
"""Backoff of attempts whose worker did not know the task's type: while workers are being replaced, another one will."""


def undo_tier(tries: int) -> Tier:
    """Retries of an undo task whose definition says nothing of them: backoff as the defaults of a tier."""
    return replace(ASKED_TIER, max_retries=tries - 1)


@dataclass(frozen=True, slots=True)
class Again:
    """A retry: when, and the counters with it counted."""

    delay_ms: int
    retries: Mapping[str, int]


def jitter_share(run_id: UUID, node: str, index: int, attempt: int) -> float:
    """A number in [0, 1) that is fixed for an attempt."""
    digest = blake2b(f"{run_id}/{node}/{index}/{attempt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def backoff_ms(tier: Tier, used: int, share: float) -> int:
    """Delay before the next try after ``used`` earlier retries of the tier: at most ``maxDelay``, less the jitter."""
    delay = float(tier.initial_delay_ms)
    if delay > 0 and tier.multiplier != 1 and used:
        power = math.log(delay) + used * math.log(tier.multiplier) if tier.multiplier > 0 else -math.inf
        delay = delay * tier.multiplier**used if power < math.log(max(tier.max_delay_ms, 1)) else tier.max_delay_ms
    delay = min(delay, float(tier.max_delay_ms))
    return round(delay * (1.0 - tier.jitter * share))


def after_unknown_type(retries: Mapping[str, int], limit: int) -> Again | None:
    """The next try of a task whose worker did not know its type; None when the budget is used up."""
    used = retries.get(UNKNOWN, 0)
    return Again(backoff_ms(UNKNOWN_TIER, used, 0.0), {**retries, UNKNOWN: used + 1}) if used < limit else None


def next_try(
    tiers: tuple[Tier, ...],
    retries: Mapping[str, int],
    error: ErrorInfo,
    *,
    asked: bool,
    after_ms: int | None,
    asked_limit: int,
    now: datetime,
    share: float,
    holds: Callable[[Tier], bool],
) -> Again | None:
    """The retry that a failure gets, or None.

    Tiers are tried in order for every failure; one whose count or time is used up leaves the failure to the next that
    matches. A worker's ``after_ms`` replaces the tier's delay. A retry that was asked for and that no tier matches has
    a budget of its own. ``holds`` evaluates a tier's ``when`` and may raise ExpressionError.
    """
    matched = False
    if after_ms is not None:
        after_ms = max(0, min(after_ms, LONGEST_MS))
    now_ms = int(now.timestamp() * 1000)
    for number, tier in enumerate(tiers):
        if not matches(tier.match, error.type) or not holds(tier):
            continue
        matched = True
        used = retries.get(str(number), 0)
        since = retries.get(f"{number}.since", now_ms)
        delay = after_ms if after_ms is not None else backoff_ms(tier, used, share)
        if used >= tier.max_retries:
            continue
        if tier.max_elapsed_ms is not None and now_ms - since + delay > tier.max_elapsed_ms:
            continue
        counted = {**retries, str(number): used + 1}
        if tier.max_elapsed_ms is not None:
            counted[f"{number}.since"] = since
        return Again(delay, counted)
    used = retries.get(ASKED, 0)
    if matched or not asked or used >= asked_limit:
        return None
    delay = after_ms if after_ms is not None else backoff_ms(ASKED_TIER, used, share)
    return Again(delay, {**retries, ASKED: used + 1})
