"""What a worker has done so far, as bare numbers.

Invariant: counting takes a fraction of a microsecond, since it is done for every step: a number is added to, and
becomes a metric only when somebody asks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final, Literal, TypeAlias

from partita.worker.attempts import Abandoned, HandedBack, Outcome, Succeeded
from partita.worker.failures import Failure

Way: TypeAlias = Literal["claim", "handover"]
NAMES: Final[dict[type, str]] = {
    Succeeded: "succeeded",
    Failure: "failed",
    HandedBack: "handed_back",
    Abandoned: "abandoned",
}
"""Outcomes of attempts as labels say them."""


class Tally:
    """Counts of one worker; its event loop writes, any thread may read."""

    __slots__ = ("attempts", "claims", "reports", "seconds", "taken")

    def __init__(self) -> None:
        self.attempts: Counter[str] = Counter()
        """Attempts that ended, by outcome."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """How long they took in all, by outcome."""
        self.reports: Counter[str] = Counter()
        """Reports by their answer: applied, already_applied, stale, or unrecorded."""
        self.claims: Counter[str] = Counter()
        """Looks for work by what came of them: found, empty or failed."""
        self.taken: Counter[tuple[str, ...]] = Counter()
        """Tasks by queue and by how they came: by a claim, or handed over by the transaction that made them ready."""

    def ended(self, outcome: Outcome, seconds: float) -> None:
        """An attempt has ended."""
        name = NAMES[type(outcome)]
        self.attempts[name] += 1
        self.seconds[name] += seconds

    def took(self, queue: str, way: Way) -> None:
        """A task was taken."""
        self.taken[queue, way] += 1
