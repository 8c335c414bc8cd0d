"""Definitions for tests, from nodes written as in a manifest.

It compiles without validating, so that a test may also build what a manifest may not say. A test of its own compares it
with the real parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from partita.domain.durations import parse_duration
from partita.domain.expressions import (
    Condition,
    DurationTemplate,
    References,
    Template,
    compile_condition,
    compile_duration,
    compile_template,
)
from partita.domain.model import (
    Case,
    Definition,
    EventAlternative,
    EventSpec,
    ForEach,
    Join,
    Node,
    NodeKind,
    Repeat,
    Route,
    TaskSpec,
    Tier,
    TimeoutRoute,
    WaitSpec,
    WorkflowSpec,
)

Manifest = Mapping[str, Any]


def definition(*nodes: Manifest, output: Any = None, timeout: str | None = None, **more: Any) -> Definition:
    """A definition of these nodes; ``more`` are fields of Definition."""
    parts = [_Parts(node) for node in nodes]
    sources = {part.name: list(dict.fromkeys([*part.depends_on, *part.reads])) for part in parts}
    for part in parts:
        for target in part.targets:
            if part.name not in sources[target]:
                sources[target].append(part.name)
    built = {
        part.name: part.node(
            tuple(sources[part.name]), tuple(other.name for other in parts if part.name in sources[other.name])
        )
        for part in parts
    }
    template = compile_template(output) if output is not None else None
    return Definition(
        name="example",
        namespace="default",
        nodes=built,
        roots=tuple(name for name, node in built.items() if not node.predecessors),
        output=template,
        output_reads=template.refs.nodes if template is not None else frozenset(),
        timeout_ms=parse_duration(timeout) if timeout is not None else None,
        **more,
    )


class _Parts:
    """One node, compiled."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.name: str = manifest["name"]
        self.depends_on: list[str] = list(manifest.get("dependsOn", ()))
        self.refs: list[References] = []
        self.fields = self._fields()
        self.reads = list(dict.fromkeys(name for refs in self.refs for name in refs.order))
        self.targets = [
            *(target for case in self.fields.get("switch", ()) for target in case.next),
            *(target for route in self.fields.get("on_error", ()) for target in route.next),
            *self._timeout_targets(),
        ]

    def _timeout_targets(self) -> Iterable[str]:
        event: EventSpec | None = self.fields.get("event")
        return (event.on_timeout.next or ()) if event is not None and event.on_timeout is not None else ()

    def template(self, value: Any) -> Template:
        template = compile_template(value)
        self.refs.append(template.refs)
        return template

    def condition(self, text: str | None) -> Condition | None:
        if text is None:
            return None
        condition = compile_condition(text)
        self.refs.append(condition.refs)
        return condition

    def duration(self, text: str | None) -> DurationTemplate | None:
        if text is None:
            return None
        duration = compile_duration(text)
        self.refs.append(duration.refs)
        return duration

    def _fields(self) -> dict[str, Any]:
        given = self.manifest
        fields: dict[str, Any] = {
            "when": self.condition(given.get("when")),
            "timeout": self.duration(given.get("timeout")),
            "retry": tuple(self._tier(tier) for tier in given.get("retry", ())),
            "on_error": tuple(
                Route(tuple(route.get("match", ())), self.condition(route.get("when")), tuple(route["next"]))
                for route in given.get("onError", ())
            ),
            "continue_on_failure": given.get("onFailure") == "continue",
            "cancel_remaining": given.get("cancelRemaining", False),
            "join": Join.COUNT if "joinCount" in given else Join(given.get("join", "all")),
            "join_count": given.get("joinCount", 0),
            "priority": given.get("priority"),
            "schedule_to_start_ms": parse_duration(given["scheduleToStart"]) if "scheduleToStart" in given else None,
        }
        if "input" in given:
            fields["input"] = self.template(given["input"])
        return fields | self._loop(given) | self._kind(given)

    def _loop(self, given: Manifest) -> dict[str, Any]:
        if given.get("forEach") is not None:
            return {"for_each": self._for_each(given["forEach"])}
        return {"repeat": self._repeat(given["repeat"])} if "repeat" in given else {}

    def _for_each(self, given: Manifest) -> ForEach:
        failures = given.get("maxFailures")
        percent = int(failures[:-1]) if isinstance(failures, str) else None
        return ForEach(
            items=self.template(given["items"]),
            variable=given.get("as", "item"),
            max_parallel=given.get("maxParallel", 100),
            max_failures=None if percent is not None else failures,
            max_failures_percent=percent,
            join_count=given.get("joinCount", 0),
            cancel_remaining=given.get("cancelRemaining", False),
        )

    def _repeat(self, given: Manifest) -> Repeat:
        return Repeat(
            until=self.condition(given.get("until")),
            while_=self.condition(given.get("while")),
            delay=self.duration(given.get("delay")),
            max_iterations=given.get("maxIterations", 1_000),
            collect=self.template(given["collect"]) if "collect" in given else None,
        )

    def _kind(self, given: Manifest) -> dict[str, Any]:
        if "switch" in given:
            cases = tuple(Case(self.condition(case.get("when")), tuple(case["next"])) for case in given["switch"])
            return {"kind": NodeKind.SWITCH, "switch": cases}
        if "wait" in given:
            until = self.template(given["wait"]["until"]) if "until" in given["wait"] else None
            return {"kind": NodeKind.WAIT, "wait": WaitSpec(self.duration(given["wait"].get("duration")), until)}
        if "compute" in given:
            return {"kind": NodeKind.COMPUTE, "compute": self.template(given["compute"])}
        if "workflow" in given:
            return {"kind": NodeKind.WORKFLOW, "workflow": WorkflowSpec(**given["workflow"])}
        if "waitForEvent" in given:
            return {"kind": NodeKind.WAIT_FOR_EVENT, **self._event(given["waitForEvent"] or {})}
        task = given.get("task") or {"type": "work"}
        return {"kind": NodeKind.TASK, "task": TaskSpec(task["type"], task.get("queue", "default"))}

    def _event(self, given: Manifest) -> dict[str, Any]:
        options = given.get("anyOf") or [{"name": given.get("name", self.name), "schema": given.get("schema")}]
        alternatives = tuple(
            EventAlternative(self.template(option["name"]), option.get("schema")) for option in options
        )
        route = given.get("onTimeout")
        on_timeout = None
        if route is not None and "output" in route:
            on_timeout = TimeoutRoute(self.template(route["output"]), None)
        elif route is not None:
            on_timeout = TimeoutRoute(None, tuple(route["next"]))
        until = self.condition(given.get("until"))
        event = EventSpec(alternatives, "anyOf" in given, until, on_timeout, given.get("ignoreEarlier", False))
        return {"event": event, "timeout": self.duration(given.get("timeout"))}

    def _tier(self, given: Manifest) -> Tier:
        return Tier(
            match=tuple(given.get("match", ())),
            when=self.condition(given.get("when")),
            max_retries=given.get("maxRetries", 1),
            initial_delay_ms=parse_duration(given.get("initialDelay", "1s")),
            multiplier=given.get("multiplier", 2),
            max_delay_ms=parse_duration(given.get("maxDelay", "5m")),
            max_elapsed_ms=parse_duration(given["maxElapsed"]) if "maxElapsed" in given else None,
            jitter=given.get("jitter", 0),
        )

    def node(self, predecessors: tuple[str, ...], successors: tuple[str, ...]) -> Node:
        names = frozenset().union(*(refs.names for refs in self.refs)) if self.refs else frozenset()
        return Node(
            name=self.name,
            predecessors=predecessors,
            successors=successors,
            reads=frozenset(self.reads),
            reads_input="input" in names,
            reads_from="from" in names,
            **self.fields,
        )
