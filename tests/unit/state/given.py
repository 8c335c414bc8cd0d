"""The definitions that the lines of the table are brought about with, by name. The line's node is ``a``."""

from __future__ import annotations

from typing import Any

from partita.domain.manifest import definition_from_spec
from partita.domain.model import Definition
from tests.property.build import definition


def one(**fields: Any) -> Definition:
    """The node ``a``, and the task ``z`` after it."""
    return definition({"name": "a", **fields}, {"name": "z", "dependsOn": ["a"]})


def event(**fields: Any) -> Definition:
    """The waitForEvent ``a``, and the task ``z`` after it."""
    return one(waitForEvent=fields)


def joined(join: str, **more: Any) -> Definition:
    """``a`` joins the tasks ``p`` and ``q``."""
    return definition({"name": "p"}, {"name": "q"}, {"name": "a", "dependsOn": ["p", "q"], "join": join, **more})


def chosen(case: str) -> Definition:
    """A switch ``p`` that chooses ``a`` if the case holds, beside the task ``z``."""
    switch = [{"when": case, "next": ["a"]}, {"next": []}]
    return definition({"name": "p", "switch": switch}, {"name": "a"}, {"name": "z"})


def closing(*nodes: dict[str, Any], final: dict[str, Any] | None = None) -> Definition:
    """These nodes and a finally, as a manifest says them."""
    spec: dict[str, Any] = {"nodes": list(nodes)}
    return definition_from_spec(spec | ({"finally": final} if final is not None else {}), name="example")


WORK: dict[str, Any] = {"task": {"type": "work"}}
UNDO: dict[str, Any] = {**WORK, "undo": {"task": {"type": "revert"}}}
AUDIT: dict[str, Any] = {"nodes": [{"name": "audit", **WORK}]}

GIVEN: dict[str, Definition] = {
    "task": one(),
    "switch": one(switch=[{"next": ["z"]}]),
    "no case": one(switch=[{"when": "${false}", "next": ["z"]}]),
    "compute": one(compute=1),
    "bad compute": one(compute="${input.none}"),
    "wait": one(wait={"duration": "10s"}),
    "past wait": one(wait={"until": "2020-01-01T00:00:00Z"}),
    "event with timeout": event(timeout="1h"),
    "event after p": definition(
        {"name": "p"}, {"name": "a", "dependsOn": ["p"], "waitForEvent": {}}, {"name": "z", "dependsOn": ["a"]}
    ),
    "stepped over": one(when="${false}"),
    "a after p": definition({"name": "p"}, {"name": "a", "dependsOn": ["p"]}),
    "not chosen": chosen("${false}"),
    "all of p and q": joined("all"),
    "merge of p and q": definition(
        {"name": "p"}, {"name": "q", "onError": [{"next": []}]}, {"name": "a", "dependsOn": ["p", "q"], "join": "merge"}
    ),
    "q caught by z": definition(
        {"name": "p"},
        {"name": "q", "onError": [{"next": ["z"]}]},
        {"name": "a", "dependsOn": ["p", "q"]},
        {"name": "z"},
    ),
    "retry": one(retry=[{"maxRetries": 1, "initialDelay": "10s"}]),
    "retry at once": one(retry=[{"maxRetries": 1, "initialDelay": "0s"}]),
    "caught": definition({"name": "a", "onError": [{"match": ["boom"], "next": ["z"]}]}, {"name": "z"}),
    "continue": one(onFailure="continue"),
    "schedule to start": one(scheduleToStart="1m"),
    "race": definition(
        {"name": "p"}, {"name": "a"}, {"name": "z", "dependsOn": ["p", "a"], "join": "any", "cancelRemaining": True}
    ),
    "timeout output": event(timeout="1h", onTimeout={"output": 1}),
    "timeout route": event(timeout="1h", onTimeout={"next": ["z"]}),
    "event": event(),
    "event with schema": event(schema={"type": "string"}),
    "event until two": event(until="${events.size() == 2}"),
    "race with event": definition(
        {"name": "p"},
        {"name": "a", "waitForEvent": {"timeout": "1h"}},
        {"name": "z", "dependsOn": ["p", "a"], "join": "any", "cancelRemaining": True},
    ),
    "event and deadline": definition({"name": "a", "waitForEvent": {}}, timeout="1h"),
    "child": one(workflow={"subflow": "s"}),
    "child with retry": one(workflow={"subflow": "s"}, retry=[{"maxRetries": 1, "initialDelay": "10s"}]),
    "child with retry at once": one(workflow={"subflow": "s"}, retry=[{"maxRetries": 1, "initialDelay": "0s"}]),
    "detached child": one(workflow={"subflow": "s", "detach": True}),
    "child of no definition": one(workflow={"name": "missing"}),
    "race with child": definition(
        {"name": "p"},
        {"name": "a", "workflow": {"subflow": "s"}},
        {"name": "z", "dependsOn": ["p", "a"], "join": "any", "cancelRemaining": True},
    ),
    "lone with subflow": definition(
        {"name": "a"}, subflows={"s": definition({"name": "w", "waitForEvent": {"name": "a"}}, subflow="s")}
    ),
    "each of two": one(forEach={"items": [1, 2]}),
    "each of none": one(forEach={"items": []}),
    "each of a text": one(forEach={"items": "text"}),
    "each, one at a time": one(forEach={"items": [1, 2], "maxParallel": 1}),
    "each, one is enough": one(forEach={"items": [1, 2], "joinCount": 1}),
    "each, one and cancel": one(forEach={"items": [1, 2], "joinCount": 1, "cancelRemaining": True}),
    "each, one may fail": one(forEach={"items": [1, 2], "maxFailures": 1}),
    "each of many": one(forEach={"items": "${range(0, 501)}", "maxParallel": 600}),
    "race with each": definition(
        {"name": "p"},
        {"name": "a", "forEach": {"items": [1, 2]}},
        {"name": "z", "dependsOn": ["p", "a"], "join": "any", "cancelRemaining": True},
    ),
    "repeat twice": one(repeat={"until": "${iteration == 1}"}),
    "repeat twice with delay": one(repeat={"until": "${iteration == 1}", "delay": "10s"}),
    "repeat once at most": one(repeat={"until": "${false}", "maxIterations": 1}),
    "lone": definition({"name": "a"}),
    "lone with timeout": definition({"name": "a"}, timeout="1h"),
    "lone with output": definition({"name": "a"}, output={"v": "${nodes.a.output}"}),
    "bad output": definition({"name": "a"}, output="${nodes.a.output.none}"),
    "fail": closing({"name": "a", "fail": {"type": "refused"}}, {"name": "z", **WORK}),
    "succeed": closing({"name": "a", "succeed": {"output": {"v": 1}}}, {"name": "z", **WORK}),
    "two": definition({"name": "a"}, {"name": "z"}),
    "undo": closing({"name": "a", **UNDO}, {"name": "z", **WORK}),
    "finally": closing({"name": "a", **WORK}, final=AUDIT),
    "finally with timeout": closing({"name": "a", **WORK}, final={**AUDIT, "timeout": "5m"}),
    "two, failFast false": definition({"name": "a"}, {"name": "z"}, fail_fast=False),
}
