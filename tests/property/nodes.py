"""Random nodes of every kind, valid by construction as far as that is simple; the same source gives the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.property.happenings import INPUT
from tests.property.words import Words

Manifest = dict[str, Any]
PASSED = {name: f"${{input.{name}}}" for name in INPUT}
_KINDS = ["task"] * 6 + ["compute", "compute", "switch", "wait"]


@dataclass
class Nodes:
    """Draws nodes from one source of chance."""

    random: Random
    features: frozenset[str]
    flows: list[str] = field(default_factory=list, kw_only=True)
    """Subflows that exist so far; a later flow may call them."""

    @property
    def many_events(self) -> bool:
        """Whether nearly everything waits for signals, also in subflows, and little fails."""
        return "many events" in self.features

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.random.randrange(one_in) == 0

    def node(self, name: str, earlier: list[str], later: list[str], inside: str) -> Manifest:
        """A node of a flow, between those that come before and after it."""
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
            node["retry"] = [self.tier() for _ in range(self.random.randint(0, 2))]
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

    def tier(self) -> Manifest:
        """A tier of a retry policy."""
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
