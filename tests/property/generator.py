"""Random definitions over the whole language, and scripts for them; the same seed gives the same ones.

Definitions are valid by construction as far as that is simple; what the parser refuses besides is left out by the
tests. Names are unique over all flows, so that a script can say by name how attempts end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.property.happenings import INPUT, Happenings
from tests.property.reference import Script
from tests.property.words import Words

Manifest = dict[str, Any]
PASSED = {name: f"${{input.{name}}}" for name in INPUT}
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
_KINDS = ["task"] * 6 + ["compute", "compute", "switch", "wait"]


@dataclass
class Case:
    """A definition's spec and what happens to its runs."""

    spec: Manifest
    script: Script


@dataclass
class Generator:
    """Draws from one source of chance."""

    random: Random
    features: frozenset[str] = ALL
    made: int = 0
    flows: list[str] = field(default_factory=list)
    """Subflows that exist so far; a later flow may call them."""

    @property
    def many_events(self) -> bool:
        """Whether nearly everything waits for signals, also in subflows, and little fails."""
        return "many events" in self.features

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.random.randrange(one_in) == 0

    def case(self) -> Case:
        """A definition and a script."""
        spec: Manifest = {"config": {"c": 3}}
        if "children" in self.features and (self.many_events or not self.chance(3)):
            spec["subflows"] = [self._subflow(number) for number in range(self.random.randint(1, 2))]
        if self.chance(3):
            spec["defaults"] = {"retry": [self._tier()]}
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
        nodes = [self._node(name, names[:at], names[at + 1 :], inside) for at, name in enumerate(names)]
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

    def _node(self, name: str, earlier: list[str], later: list[str], inside: str) -> Manifest:
        depends = self.random.sample(earlier, min(len(earlier), self.random.choice([0, 1, 1, 2, 2, 3])))
        node: Manifest = {"name": name}
        if depends:
            node["dependsOn"] = depends
        self._join(node, len(depends))
        whole = node.get("join", "all") in ("all", "merge") and "joinCount" not in node
        words = Words(self.random, depends, settled=whole)
        if self.chance(4):
            node["when"] = words.condition()
        self._kind(node, words, later, inside)
        if not {"fail", "succeed"} & node.keys():
            self._handlers(node, later)
        return node

    def _join(self, node: Manifest, sources: int) -> None:
        kind = self.random.choice(["all", "all", "merge", "merge", "any", "count"])
        if kind == "all" or (kind in ("any", "count") and "racing" not in self.features):
            return
        if kind == "count":
            if sources:
                node["joinCount"] = self.random.randint(1, sources)
        else:
            node["join"] = kind
        if self.chance(2) and kind in ("any", "count") and sources:
            node["cancelRemaining"] = True

    def _kind(self, node: Manifest, words: Words, later: list[str], inside: str) -> None:
        kind = self.random.choice(self._kinds())
        match kind:
            case "compute":
                node["compute"] = {"v": words.value()}
            case "switch":
                self._switch(node, words, later)
            case "wait":
                node["wait"] = {"duration": self.random.choice(["0s", "2s", "30s"])}
            case "event":
                node["waitForEvent"] = self._event(words, later)
            case "fail":
                node["fail"] = {"type": "refused", "message": self.random.choice(["no", "k is ${input.k}"])}
            case "succeed":
                node["succeed"] = {"output": {"s": words.value()}} if not self.chance(3) else {}
            case _:
                self._worked(node, kind, words, inside)

    def _kinds(self) -> list[str]:
        kinds = [*_KINDS]
        if "events" in self.features:
            kinds.append("event")
        if "children" in self.features:
            kinds += ["child", "child", "child"]
        if "ends" in self.features:
            kinds += ["fail", "succeed"] if self.chance(3) else []
        if self.many_events:
            kinds = ["event"] * 4 + ["child"] * 4 + ["task"] * 2
        return kinds

    def _switch(self, node: Manifest, words: Words, later: list[str]) -> None:
        cases: list[Manifest] = [
            {"when": words.condition(), "next": self._later(later)} for _ in range(self.random.randint(1, 2))
        ]
        if self.chance(2):
            cases.append({"next": self._later(later)})
        node["switch"] = cases

    def _later(self, later: list[str]) -> list[str]:
        return self.random.sample(later, min(len(later), self.random.choice([0, 1, 1, 2])))

    def _event(self, words: Words, later: list[str]) -> Manifest:
        event: Manifest = {}
        if self.chance(4):
            event["anyOf"] = [{"name": "go"}, {"name": "num", "schema": {"type": "integer"}}]
        else:
            event["name"] = self.random.choice(["go", "stop", "num"])
            if event["name"] == "num":
                event["schema"] = {"type": "integer"}
        if self.chance(2 if self.many_events else 3):
            event["until"] = "${events.size() >= 2}"
        if self.chance(4):
            event["ignoreEarlier"] = True
        if not self.chance(3):
            event["timeout"] = self.random.choice(["10s", "40s"])
            if self.chance(2):
                route: Manifest = {"next": self._later(later)} if self.chance(2) else {"output": {"t": words.value()}}
                event["onTimeout"] = route
        return event

    def _worked(self, node: Manifest, kind: str, words: Words, inside: str) -> None:
        """A task or a child, perhaps in a loop."""
        calls_itself = kind == "child" and bool(inside) and self.chance(3)
        if "loops" in self.features and self.chance(3) and not calls_itself:
            self._loop(node, words)
        if kind == "child":
            self._child(node, words, inside if calls_itself else "")
        else:
            node["task"] = {"type": "work"}
            node["scheduleToStart"] = "1h"
            if not self.chance(3):
                node["input"] = {"v": words.value()}
        if self.chance(2) and not calls_itself:
            node["retry"] = [self._tier() for _ in range(self.random.randint(0, 2))]
        if "undo" in self.features and self.chance(3) and not node.get("workflow", {}).get("detach"):
            node["undo"] = {
                "task": {"type": "reverse"},
                "input": {"i": "${input}", "o": "${output}", "e": "${get(error, 'type', 'none')}"},
            }

    def _child(self, node: Manifest, words: Words, itself: str) -> None:
        given = {**PASSED, "v": words.value()}
        if itself or (self.flows and (self.many_events or not self.chance(3))):
            node["workflow"] = {"subflow": itself or self.random.choice(self.flows)}
        else:
            node["workflow"] = {"name": self.random.choice(["other", "other", "other", "asks", "missing"])}
            if self.chance(3):
                node["workflow"]["version"] = self.random.choice([1, 9])
            if self.chance(3):
                given = {"k": words.value()}
            if self.chance(4):
                node["workflow"]["detach"] = True
        node["input"] = given
        if self.chance(4) and "racing" in self.features and not node["workflow"].get("detach"):
            node["timeout"] = self.random.choice(["3s", "30s"])

    def _loop(self, node: Manifest, words: Words) -> None:
        if self.chance(3):
            node["repeat"] = self._repeat(words)
            words.extra += ["${iteration}", "${previous}", "${get(previous, 'attempt', 0)}"]
            return
        items = ["${input.list}", "${input.list}", "${input.map}", "${input.none}", *words.items()]
        loop: Manifest = {"items": self.random.choice(items)}
        if self.chance(2):
            loop["maxParallel"] = self.random.randint(1, 2)
        if "racing" in self.features:
            if self.chance(3):
                loop["maxFailures"] = self.random.choice([1, 2, "40%", "67%"])
            if self.chance(4):
                loop["joinCount"] = self.random.randint(1, 4)
            if self.chance(3):
                loop["cancelRemaining"] = True
        else:
            loop["maxFailures"] = "100%"
        variable = "item"
        if self.chance(3):
            variable = loop["as"] = "one"
        node["forEach"] = loop
        words.extra += [f"${{{variable}}}", "${index}", "${key}"]

    def _repeat(self, words: Words) -> Manifest:
        stop = self.random.choice(
            ["${iteration >= 1}", "${iteration >= 2}", "${output.attempt == 2}", words.condition()]
        )
        repeat: Manifest = {self.random.choice(["until", "until", "while"]): stop}
        repeat["maxIterations"] = self.random.randint(1, 4)
        if self.chance(2):
            repeat["delay"] = self.random.choice(["1s", "20s"])
        if self.chance(2):
            repeat["collect"] = self.random.choice(["${output}", "${iteration}", "${get(output, 'attempt', 0)}"])
        return repeat

    def _tier(self) -> Manifest:
        tier: Manifest = {
            "maxRetries": self.random.randint(0, 2),
            "initialDelay": self.random.choice(["0s", "1s", "8s"]),
            "jitter": 0,
        }
        if self.chance(2):
            tier["match"] = self.random.choice([["boom"], ["timeout"], ["any", "fatal"], ["refused", "cancelled"]])
        if self.chance(5):
            tier["when"] = "${error.type == 'boom'}"
        if self.chance(5):
            tier["maxElapsed"] = "5s"
        return tier

    def _handlers(self, node: Manifest, later: list[str]) -> None:
        if self.chance(4):
            match = self.random.choice([["any"], ["boom"], ["expression"], ["timeout", "refused"], ["cancelled"]])
            node["onError"] = [{"match": match, "next": self._later(later)}]
        if self.chance(5):
            node["onFailure"] = "continue"

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
