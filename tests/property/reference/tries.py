"""Attempts: what begins them, how they fail, and when they are tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.property.reference.graph import Manifest, milliseconds
from tests.property.reference.script import ASKED_AFTER_MS, error_of, result_of
from tests.property.reference.spot import Error, Work
from tests.property.reference.words import ExpressionFailed, Names, holds

if TYPE_CHECKING:
    from tests.property.reference.run import Run

LOST_BUDGET = 10
ASKED_BUDGET = 3
UNKNOWN_BUDGET = 10
UNDO_TRIES = 5
UNCAUGHT = ("fatal", "expression", "cancelled")


def error(kind: str, message: str = "") -> Error:
    """An error of a type."""
    return {"type": kind, "message": message}


def matches(match: list[str], kind: str) -> bool:
    """Whether a list of types takes an error."""
    return kind in match or ((not match or "any" in match) and kind not in UNCAUGHT)


def default_tier(tries: int) -> Manifest:
    """What an undo has without ``defaults.retry``."""
    return {"maxRetries": tries - 1, "initialDelay": "1s"}


def delay_again(tiers: list[Manifest], work: Work, now: int, failure: Error, names: Names, after: int | None) -> int:
    """Milliseconds until the next try; -1: none. Counts it."""
    matched = False
    for number, tier in enumerate(tiers):
        key = str(number)
        if not matches(tier.get("match", []), failure["type"]) or not holds(tier.get("when"), names):
            continue
        matched = True
        used = work.used.get(key, 0)
        growth = milliseconds(tier.get("initialDelay", "1s")) * tier.get("multiplier", 2) ** used
        delay = after if after is not None else min(growth, milliseconds(tier.get("maxDelay", "5m")))
        since = work.since.get(key, now)
        longest = milliseconds(tier["maxElapsed"]) if "maxElapsed" in tier else None
        if used >= tier.get("maxRetries", 100_000) or (longest is not None and now - since + delay > longest):
            continue
        work.since[key] = since
        work.used[key] = used + 1
        return delay
    used = work.used.get("asked", 0)
    if matched or after is None or used >= ASKED_BUDGET:
        return -1
    work.used["asked"] = used + 1
    return after


class Tries:
    """The attempts of one run's works."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def begin(self, name: str, work: Work) -> None:
        """Hand an attempt to a worker that takes it at once."""
        work.attempt += 1
        work.state, work.begun, work.step = "Waiting", True, self.run.sim.step
        outcome = self.run.sim.script.outcome(self.run.path, name, work.index, work.attempt)
        self.run.at("attempt", name, work.index, outcome.after, lambda: self._ended(name, work, outcome.how))

    def _ended(self, name: str, work: Work, how: str) -> None:
        work.begun = False
        if how == "ok":
            self.run.work_completed(name, work, result_of(name, work.index, work.attempt))
        elif how == "lost" and work.used.get("lost", 0) < LOST_BUDGET:
            work.used["lost"] = work.used.get("lost", 0) + 1
            self.run.work_lost(name, work)
        elif how == "untaken":
            self.run.work_failed(name, work, error("schedule_to_start"))
        elif how == "unknown_task_type" and work.used.get("unknown", 0) < UNKNOWN_BUDGET:
            self._unknown(name, work)
        elif how == "lost":
            self.run.work_lost_too_often(name, work)
        elif how == "timeout" and self.run.outcome_matters(name):
            self.run.outcome_unknown(name, work, how)
        elif how == "timeout":
            self.run.work_failed(name, work, error("timeout"))
        else:
            self.run.work_failed(name, work, error_of(how), after=ASKED_AFTER_MS if how == "asked" else None)

    def _unknown(self, name: str, work: Work) -> None:
        """The worker does not know the type: another one may, after a while."""
        if self.run.outcome_matters(name):
            self.run.work_failed(name, work, error("unknown_task_type"))
            return
        used = work.used.get("unknown", 0)
        work.used["unknown"] = used + 1
        work.state = "Waiting"
        self.run.at("backoff", name, work.index, min(1_000 * 2**used, 30_000), lambda: self.begin(name, work))

    def again(self, name: str, work: Work, tiers: list[Manifest], failure: Error, **more: Any) -> bool:
        """Plan the next try of a failed work; says whether there is one."""
        after: int | None = more.get("after")
        names = {**self.run.names(), **work.extra, "error": failure}
        try:
            delay = delay_again(tiers, work, self.run.sim.now, failure, names, after)
        except ExpressionFailed:
            return False
        if delay < 0:
            return False
        work.state = "Waiting"
        if delay == 0:
            self.run.try_again(name, work)
        else:
            self.run.at("backoff", name, work.index, delay, lambda: self.run.try_again(name, work))
        return True
