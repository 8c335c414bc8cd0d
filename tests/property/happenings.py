"""Random scripts for a definition: how attempts end and when, and what people send."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.property.reference import Act, Outcome, Script

Manifest = dict[str, Any]
INPUT = {"yes": True, "no": False, "k": 2, "list": [1, 2, 3], "map": {"b": 1, "a": 2}, "none": []}


class Happenings:
    """Draws from one source of chance."""

    def __init__(self, random: Random, features: frozenset[str]) -> None:
        self.random, self.features = random, features
        self.many_events = "many events" in features

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.random.randrange(one_in) == 0

    def script(self, spec: Manifest) -> Script:
        """How attempts end and what people send."""
        worked = [node["name"] for node in every_node(spec) if "task" in node] + ["o1", "o2"]
        reversing = [f"{node['name']}~undo" for node in every_node(spec) if "undo" in node]
        outcomes = {name: self._plan() for name in [*worked, *reversing]}
        acts: list[Act] = []
        if "events" in self.features:
            for _ in range(self.random.randint(4, 12) if self.many_events else self.random.randint(0, 4)):
                name, payload = self.random.choice([("go", 7), ("stop", "x"), ("num", 1), ("num", "x"), ("num", True)])
                path = ((f"n{self.random.randint(1, len(worked))}", 0, 1),) if self.chance(3) else ()
                acts.append(Act(self.random.randint(0, 40) * 1_000, "signal", name, payload, path))
        if "acts" in self.features:
            acts += self._controls(spec)
        acts += [Act(86_400_000, "cancel"), Act(2 * 86_400_000, "now")]
        return Script(dict(INPUT), outcomes, tuple(acts))

    def _controls(self, spec: Manifest) -> list[Act]:
        at = self.random.randint(0, 15_000)
        if self.chance(6):
            return [Act(at, "cancel"), *([Act(at + 1_500, "now")] if self.chance(3) else [])]
        if self.chance(12):
            return [Act(at, "now")]
        if self.chance(6):
            names = [node["name"] for node in spec["nodes"]]
            return [
                Act(at, "cancelNodes", " ".join(self.random.sample(names, self.random.randint(1, min(2, len(names))))))
            ]
        return []

    def _plan(self) -> tuple[Outcome, ...]:
        hows = ["ok"] * 6 + ["boom", "boom", "bad", "lost", "timeout", "asked", "fatal", "untaken", "unknown_task_type"]
        if self.many_events and not self.chance(3):
            hows = ["ok"]
        after = [1_000, 1_000, 2_000, 3_000, 5_000, 9_000]
        if self.chance(15):
            after = [70_000]
        return tuple(
            Outcome(self.random.choice(hows), self.random.choice(after)) for _ in range(self.random.randint(1, 4))
        )


def every_node(spec: Manifest) -> list[Manifest]:
    """The nodes of a definition, of its subflows, and of what runs finally."""
    found = []
    for flow in (spec, *spec.get("subflows", ())):
        found += [*flow["nodes"], *flow.get("finally", {}).get("nodes", ())]
    return found
