"""What is told of a WorkflowRun as Events: that it started, what it waits for, how it ended, why there is no run.

Invariant: at most one Event object for each of these, however many nodes a run has or how often it waits, so that a run
costs a handful of Events at most. What is told follows from the status that was just written and the one before it: a
status that is not written again is not told again. News of a run that gets on is held back for a few seconds: one that
ends well before that makes no Event at all, and costs the API server nothing beyond its object and its status.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from partita.domain.state.rows import TERMINAL, RunStatus
from partita.engine.projection import ObjectRef, Refusal, RunSummary
from partita.kube.events import News
from partita.kube.resources import RUNS

HELD: Final = 20_000
"""Runs whose news may be held back; those of further ones are dropped."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a status said before it was written anew."""

    phase: str
    waiting: str


@dataclass(slots=True)
class _Held:
    due: float
    started: News | None = None
    waiting: News | None = None


class RunEvents:
    """Decides what is told, and when. ``after_ms``: how long news of a run that gets on is held back."""

    def __init__(
        self, tell: Callable[[News], None], *, after_ms: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._after = after_ms / 1000
        self._clock = clock
        self._held: dict[str, _Held] = {}

    def shown(self, run: RunSummary, before: Shown, status: dict[str, Any]) -> None:
        """A status of a run stands in its object."""
        if run.status in TERMINAL:
            self._ended(run, before, status)
            return
        waiting = str(status.get("waitingFor") or "")
        if before.phase in ("", RunStatus.PENDING) and run.status is not RunStatus.PENDING:
            words = f"run {run.run_id} of version {run.version} of {run.definition}"
            self._hold(run.object, started=_news(run.object, "Started", words))
        if waiting and waiting != before.waiting:
            self._hold(run.object, waiting=_news(run.object, "Waiting", f"waits for {waiting}", latest=True))
        elif not waiting and (held := self._held.get(run.object.uid)):
            held.waiting = None

    def refused(self, refusal: Refusal) -> None:
        """An object shows why it has no run."""
        if refusal.waiting:
            news = _news(refusal.object, refusal.reason, refusal.message, warning=True, latest=True)
            self._hold(refusal.object, waiting=news)
            return
        self._held.pop(refusal.object.uid, None)
        words = f"{refusal.reason}: {refusal.message}"
        self._tell(_news(refusal.object, "Refused", words, warning=True, key=str(refusal.object.generation)))

    def flush(self) -> None:
        """Tell what was held back long enough."""
        now = self._clock()
        while self._held:
            uid, held = next(iter(self._held.items()))
            if held.due > now:
                return
            del self._held[uid]
            for news in (held.started, held.waiting):
                if news is not None:
                    self._tell(news)

    def _ended(self, run: RunSummary, before: Shown, status: dict[str, Any]) -> None:
        self._held.pop(run.object.uid, None)
        if before.phase == run.status.value:
            return
        lived = (run.finished_at or run.now) - run.created_at
        if run.status is RunStatus.SUCCEEDED and lived < timedelta(seconds=self._after):
            return
        words = f"{run.done} of {run.total} nodes settled in {_duration(lived)}"
        if run.status is not RunStatus.SUCCEEDED:
            words = str(status.get("message") or run.reason or words)
        failed = run.status is RunStatus.FAILED
        self._tell(_news(run.object, run.status.value, words, warning=failed, key=str(run.run_id)))

    def _hold(self, ref: ObjectRef, *, started: News | None = None, waiting: News | None = None) -> None:
        held = self._held.get(ref.uid)
        if held is None:
            if len(self._held) >= HELD:
                return
            held = self._held[ref.uid] = _Held(self._clock() + self._after)
        held.started = started or held.started
        held.waiting = waiting or held.waiting


def _news(ref: ObjectRef, reason: str, message: str, **more: Any) -> News:
    return News(
        kind=RUNS.kind, namespace=ref.namespace, name=ref.name, uid=ref.uid, reason=reason, message=message, **more
    )


def _duration(lived: timedelta) -> str:
    whole = max(0, round(lived.total_seconds()))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
