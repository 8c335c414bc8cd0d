"""Random definitions over the whole language, and scripts for them; the same seed gives the same ones.

Definitions are valid by construction as far as that is simple; what the parser refuses besides is left out by the
tests. Names are unique over all flows, so that a script can say by name how attempts end.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.property.happenings import Happenings
from tests.property.nodes import Manifest, Nodes
from tests.property.reference import Script
from tests.property.words import Words

ALL = frozenset({"racing", "loops", "children", "undo", "finally", "ends", "acts", "events"})
VARIETY = (
    ALL,
    ALL,
    ALL - {"loops"},
    ALL - {"children"},
    ALL - {"racing", "ends"},
    frozenset({"events", "many events", "children"}),
    frozenset({"events", "many events", "children", "loops", "racing"}),
)
"""Smaller languages go deeper into what is left."""


@dataclass
class Case:
    """A definition's spec and what happens to its runs."""

    spec: Manifest
    script: Script


@dataclass
class Generator(Nodes):
    """Draws whole definitions and their scripts from one source of chance."""

    made: int = 0

    def case(self) -> Case:
        """A definition and a script."""
        spec: Manifest = {"config": {"c": 3}}
        if "children" in self.features and (self.many_events or not self.chance(3)):
            spec["subflows"] = [self._subflow(number) for number in range(self.random.randint(1, 2))]
        if self.chance(3):
            spec["defaults"] = {"retry": [self.tier()]}
        elif "undo" in self.features:
            spec["defaults"] = {"retry": [{"maxRetries": 1, "initialDelay": "1s", "jitter": 0}]}
        spec |= self._flow(self.random.randint(1, 7))
        return Case(spec, Happenings(self.random, self.features).script(spec))

    def _subflow(self, number: int) -> Manifest:
        name = f"sub{number}"
        flow = {"name": name} | self._flow(self.random.randint(1, 3), inside=name)
        self.flows.append(name)
        return flow

    def _flow(self, size: int, inside: str = "") -> Manifest:
        names = [self._name() for _ in range(size)]
        nodes = [self.node(name, names[:at], names[at + 1 :], inside) for at, name in enumerate(names)]
        flow: Manifest = {"nodes": nodes}
        if self.chance(3) or "racing" not in self.features:
            flow["failFast"] = False
        if self.chance(6) and "racing" in self.features:
            flow["timeout"] = self.random.choice(["4s", "20s", "100s"])
        if not self.chance(4):
            words = Words(self.random, names[-3:], settled=False)
            flow["output"] = {f"p{at}": words.value(risky=False) for at in range(2)}
        if "finally" in self.features and self.chance(3):
            flow["finally"] = self._finally(names)
        return flow

    def _name(self) -> str:
        self.made += 1
        return f"n{self.made}"

    def _finally(self, main: list[str]) -> Manifest:
        names = [self._name() for _ in range(self.random.randint(1, 3))]
        nodes = []
        for at, name in enumerate(names):
            depends = self.random.sample(names[:at], min(at, self.random.choice([0, 0, 1])))
            node: Manifest = {"name": name, **({"dependsOn": depends} if depends else {})}
            words = Words(self.random, depends, settled=True)
            words.extra += ["${run.status}", "${run.output}", "${get(run, 'error.type', 'none')}"]
            words.extra += [f"${{nodes.{other}.output}}" for other in main[:2]]
            self._last_kind(node, words)
            nodes.append(node)
        last: Manifest = {"nodes": nodes}
        if self.chance(4):
            last["timeout"] = self.random.choice(["2s", "15s"])
        return last

    def _last_kind(self, node: Manifest, words: Words) -> None:
        kind = self.random.choice(["task", "task", "compute", "wait", "fail", "child"])
        if kind == "compute":
            node["compute"] = {"v": words.value(), "w": words.value()}
        elif kind == "wait":
            node["wait"] = {"duration": "3s"}
        elif kind == "fail" and "ends" in self.features and self.chance(3):
            node["fail"] = {"type": "refused"}
        elif kind == "child" and "children" in self.features:
            node["workflow"] = {"name": "other", "version": 1}
            node["input"] = {"k": words.value()}
        else:
            node["task"] = {"type": "work"}
            node["input"] = {"v": words.value(), "w": words.value()}
            if "loops" in self.features and self.chance(4):
                node["forEach"] = {"items": "${input.list}"}


def generate(seed: int, features: frozenset[str] | None = None) -> Case:
    """The case of a seed, of all features or of most of them."""
    return Generator(Random(seed), features or VARIETY[seed % len(VARIETY)]).case()  # noqa: S311  # a test's chance
