"""What the world does to a run: how attempts end and when, what people send.

A script belongs to definitions and not to an order of events: how an attempt ends depends on its run, node, item and
number alone, so that any two executions of one script can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

Path = tuple[tuple[str, int, int], ...]
"""Where a run is in its tree: the (node, index, attempt) of every ancestor that started it; () is the root."""


class Outcome(NamedTuple):
    """How an attempt ends, and after how many milliseconds."""

    how: str
    """ok, lost, timeout, asked (a retry after 2 s), untaken (no worker takes it), or the type of the error."""
    after: int


class Act(NamedTuple):
    """What somebody does to the root run at a time in milliseconds."""

    at: int
    what: str
    """signal, cancel, now (cancels without undo and finally), or cancelNodes."""
    name: str = ""
    payload: Any = None
    path: Path = ()
    """Of a signal: the run that it is sent to."""


ASKED_AFTER_MS = 2_000
ANY_TIME = (1, 1_000, 3_000, 20_000, 130_000)
"""Milliseconds that an attempt may take where times are drawn."""


@dataclass(frozen=True)
class Script:
    """What happens to the runs of a definition and its children."""

    input: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, tuple[Outcome, ...]] = field(default_factory=dict)
    """By node (``x~undo`` for what reverses x); used in turn by items, attempts and runs."""
    acts: tuple[Act, ...] = ()
    times: int = 0
    """Other than 0: how long each attempt takes is drawn anew, and differs from script to script."""

    def outcome(self, path: Path, node: str, index: int, attempt: int) -> Outcome:
        """How an attempt ends."""
        plan = self.outcomes.get(node) or (Outcome("ok", 1_000),)
        number = attempt - 1 + index + sum(at + nth - 1 for _, at, nth in path)
        outcome = plan[number % len(plan)]
        if not self.times:
            return outcome
        drawn = Random(f"{self.times} {path} {node} {index} {attempt}").choice(ANY_TIME)  # noqa: S311  # a test's chance
        return Outcome(outcome.how, drawn)


def result_of(node: str, index: int, attempt: int) -> dict[str, Any]:
    """What a successful attempt returns."""
    return {"node": node, "index": index, "attempt": attempt}


def error_of(how: str) -> dict[str, str]:
    """What a failing attempt reports."""
    return {"type": how, "message": f"{how} happened"}
