"""Random definitions: small graphs of every node kind, with every join, route, condition and retry.

Tasks answer as a plan says: for each node its outcomes, attempt by attempt. A plan belongs to a definition and not to
an order of events, so that two runs of one scenario can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from partita.domain.model import Definition
from tests.property.build import definition

Draw = st.DrawFn


@dataclass(frozen=True)
class Scenario:
    """A definition and what its tasks and signals will do."""

    manifest: tuple[dict[str, Any], ...]
    outcomes: dict[str, tuple[str, ...]]
    """For each task: ok, boom, bad, lost, timeout, asked or fatal for its attempts; the last one repeats."""
    fail_fast: bool
    timeout: str | None

    def definition(self) -> Definition:
        """The definition."""
        return definition(
            *self.manifest,
            output={node["name"]: f"${{nodes.{node['name']}.output}}" for node in self.manifest[-3:]},
            timeout=self.timeout,
            fail_fast=self.fail_fast,
        )


def _edges(draw: Draw, earlier: list[str]) -> list[str]:
    if not earlier:
        return []
    return draw(st.lists(st.sampled_from(earlier), max_size=3, unique=True))


def _join(draw: Draw, node: dict[str, Any], sources: int) -> None:
    kind = draw(st.sampled_from(["all", "all", "merge", "merge", "any", "count"]))
    if kind == "count":
        node["joinCount"] = draw(st.integers(1, max(1, sources)))
    elif kind != "all":
        node["join"] = kind
    if kind in ("any", "count"):
        node["cancelRemaining"] = draw(st.booleans())


def _later(draw: Draw, later: list[str]) -> list[str]:
    if not later:
        return []
    return draw(st.lists(st.sampled_from(later), max_size=2, unique=True))


def _kind(draw: Draw, node: dict[str, Any], later: list[str]) -> None:
    kind = draw(st.sampled_from(["task", "task", "task", "switch", "wait", "waitForEvent", "compute"]))
    if kind == "task":
        _task(draw, node, later)
    elif kind == "switch":
        node["switch"] = [
            {"when": draw(st.sampled_from(["${input.yes}", "${input.no}"])), "next": _later(draw, later)},
            *([{"next": _later(draw, later)}] if draw(st.booleans()) else []),
        ]
    elif kind == "wait":
        node["wait"] = {"duration": draw(st.sampled_from(["0s", "5s", "1m"]))}
    elif kind == "waitForEvent":
        _event(draw, node, later)
    else:
        reads = node["dependsOn"][:1]
        node["compute"] = {"v": f"${{nodes.{reads[0]}.output}}" if reads else 1}
    if draw(st.integers(0, 3)) == 0:
        node["when"] = draw(st.sampled_from(["${input.yes}", "${input.no}"]))
    if draw(st.integers(0, 5)) == 0:
        node["onFailure"] = "continue"


def _task(draw: Draw, node: dict[str, Any], later: list[str]) -> None:
    if node["dependsOn"] and draw(st.booleans()):
        node["input"] = {"v": f"${{nodes.{node['dependsOn'][0]}.output}}"}
    if draw(st.booleans()):
        node["retry"] = draw(
            st.lists(
                st.fixed_dictionaries(
                    {
                        "match": st.sampled_from([[], ["boom"], ["timeout"]]),
                        "maxRetries": st.integers(0, 2),
                        "initialDelay": st.sampled_from(["0s", "1s", "10s"]),
                    }
                ),
                max_size=2,
            )
        )
    if draw(st.integers(0, 2)) == 0:
        node["onError"] = [{"match": [draw(st.sampled_from(["any", "boom"]))], "next": _later(draw, later)}]


def _event(draw: Draw, node: dict[str, Any], later: list[str]) -> None:
    event: dict[str, Any] = {"name": draw(st.sampled_from(["go", "stop"]))}
    if draw(st.booleans()):
        event["timeout"] = "30s"
        route = draw(st.sampled_from(["error", "output", "next"]))
        if route == "output":
            event["onTimeout"] = {"output": "late"}
        elif route == "next":
            event["onTimeout"] = {"next": _later(draw, later)}
    if draw(st.integers(0, 2)) == 0:
        event["schema"] = {"type": "integer"}
    if draw(st.integers(0, 3)) == 0:
        event["until"] = "${events.size() >= 2}"
    if draw(st.integers(0, 3)) == 0:
        event["ignoreEarlier"] = True
    node["waitForEvent"] = event


_OUTCOMES = ["ok", "ok", "ok", "boom", "bad", "lost", "timeout", "asked", "fatal"]


@st.composite
def scenarios(draw: Draw) -> Scenario:
    """Scenarios."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 9)))]
    nodes: list[dict[str, Any]] = []
    for position, name in enumerate(names):
        node: dict[str, Any] = {"name": name, "dependsOn": _edges(draw, names[:position])}
        _kind(draw, node, names[position + 1 :])
        _join(draw, node, len(node["dependsOn"]))
        nodes.append(node)
    outcomes = {name: tuple(draw(st.lists(st.sampled_from(_OUTCOMES), min_size=1, max_size=3))) for name in names}
    timeout = draw(st.sampled_from([None, None, "100s"]))
    return Scenario(tuple(nodes), outcomes, draw(st.booleans()), timeout)
