"""One clock over a tree of runs: the next thing that is due happens, and everything that follows from it at once.

What happens at the same instant in an order that nobody promised (nodes that fire together, messages between runs) is
decided by a variant: 0 is as written, first come first served; 1 is backwards; others shuffle. A result that two
variants do not share is not fixed by the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from tests.property.reference.graph import Manifest
from tests.property.reference.run import Run
from tests.property.reference.script import Act, Path, Script


@dataclass(frozen=True, order=True)
class Key:
    """Something that is due; of two at the same time the smaller goes first."""

    kind: str
    path: Path
    node: str
    index: int


class Result(NamedTuple):
    """What became of everything."""

    runs: dict[Path, dict[str, Any]]
    signals: dict[tuple[Path, str], tuple[str, bool]]
    """By mailbox and id: the node that took it, and whether it was refused."""


@dataclass
class Simulation:
    """The runs of one script."""

    spec: Manifest
    script: Script
    catalogue: Mapping[str, Mapping[int, Manifest]] = field(default_factory=dict)
    """Definitions by name and version; the highest is deployed."""
    child_depth: int = 50
    variant: int = 0
    now: int = 0
    step: int = 0
    """Counts what was due: an attempt that begins is taken by a worker before the next step."""
    agenda: dict[Key, tuple[int, Callable[[], None]]] = field(default_factory=dict)
    inbox: list[tuple[Path, Callable[[], None]]] = field(default_factory=list)
    runs: dict[Path, Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.variant + 100 * self.script.times)  # noqa: S311  # shuffles, no secrets

    def order(self, names: Sequence[str]) -> list[str]:
        """The order in which nodes are looked at in one pass."""
        ordered = list(names)
        if self.variant == 1:
            ordered.reverse()
        elif self.variant:
            self.random.shuffle(ordered)
        return ordered

    def post(self, path: Path, work: Callable[[], None]) -> None:
        """A message to a run; those to one run keep their order."""
        self.inbox.append((path, work))

    def drain(self) -> None:
        """Apply messages until there are none; where times are drawn, some may be late, unless nothing else is due."""
        while self.inbox and not (self.script.times and self.agenda and self.random.randrange(3) == 0):
            self.inbox.pop(self._next_message())[1]()

    def _next_message(self) -> int:
        if not self.variant:
            return 0
        path = self.random.choice(sorted({path for path, _ in self.inbox}))
        return next(number for number, (target, _) in enumerate(self.inbox) if target == path)

    def play(self) -> Result:
        """Everything that happens, until nothing is due."""
        acts = sorted(self.script.acts, key=lambda act: act.at)
        self.runs[()] = Run(self, self.spec, (), self.script.input)
        self.runs[()].start()
        self.drain()
        while self.agenda or self.inbox or (acts and not self.runs[()].ended):
            self.step += 1
            due = min(self.agenda, key=lambda key: (self.agenda[key][0], key)) if self.agenda else None
            if acts and (due is None or acts[0].at <= self.agenda[due][0]):
                self._act(acts.pop(0), len(acts))
            elif due is not None:
                self.now, work = self.agenda.pop(due)
                work()
            self.drain()
        return Result(
            {path: run.result() for path, run in self.runs.items()},
            {
                (path, one["id"]): (one["taken"], one["refused"])
                for path, run in self.runs.items()
                for one in run.mailbox.signals
            },
        )

    def _act(self, act: Act, left: int) -> None:
        root = self.runs[()]
        self.now = max(self.now, act.at)
        if root.ended:
            return
        target = self.runs.get(act.path)
        match act.what:
            case "signal" if target is None or target.ended or target.mailbox.owner is not target.mailbox:
                return
            case "signal" if target is not None:
                target.mailbox.arrive(act.name, f"s{left}", act.payload)
            case "cancelNodes":
                root.cancel_nodes(act.name.split())
            case _:
                root.closing.cancel(now=act.what == "now")


def interpret(spec: Manifest, script: Script, *, variants: int = 3, **more: Any) -> Result | None:
    """What the language says that becomes of a script; None if it depends on an order that the language leaves open."""
    first = Simulation(spec, script, **more).play()
    for variant in range(1, variants):
        if Simulation(spec, script, variant=variant, **more).play() != first:
            return None
    return first
