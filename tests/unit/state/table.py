"""The state machine as a table: state and event → state and effects.

Each line is a fact that a test proves by making it happen; docs/state-machine.md is made from the same lines. They are
kept as text, one line each, in ``nodes.table`` and ``runs.table``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.domain.model import Definition
from tests.property.world import World
from tests.unit.state import steps
from tests.unit.state.given import GIVEN

Step = Callable[[World], Any]


@dataclass(frozen=True)
class Line:
    """One transition. ``subject`` is the node that it is about, or '' for the run."""

    before: str
    event: str
    condition: str
    after: str
    effects: tuple[str, ...]
    """What is written besides the row itself; see ``steps.effects_of``."""
    given: Definition
    arrange: tuple[Step, ...]
    act: Step
    subject: str

    @property
    def title(self) -> str:
        """Names the line in a test report."""
        return f"{'node' if self.subject else 'run'} {self.before} {self.event} {self.condition}".strip()


def _step(name: str) -> Step:
    step: Step = getattr(steps, name)
    return step


def _words(cell: str) -> tuple[str, ...]:
    return tuple(word for word in cell.split(", ") if word)


def _lines(name: str, subject: str) -> tuple[Line, ...]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines()[1:]:
        before, event, condition, after, effects, given, arrange, act = (cell.strip() for cell in line.split("|"))
        arranged = tuple(_step(step) for step in _words(arrange))
        lines.append(
            Line(before, event, condition, after, _words(effects), GIVEN[given], arranged, _step(act), subject)
        )
    return tuple(lines)


NODE_LINES = _lines("nodes.table", "a")
RUN_LINES = _lines("runs.table", "")
