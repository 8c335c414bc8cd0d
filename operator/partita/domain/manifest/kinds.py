"""The kinds of nodes, one reader each.

Invariant: a reader returns the fields of ``Node`` that its kind sets or overrides; kinds of later versions are added to
the table and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from partita.domain.expressions import DurationTemplate, ExpressionError, Template
from partita.domain.expressions.functions.times import parse_time
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.policies import QUEUE_EXPECTED, NodeDefaults
from partita.domain.manifest.reader import Fields
from partita.domain.model import Case, EventAlternative, EventSpec, NodeKind, TaskSpec, TimeoutRoute, WaitSpec
from partita.domain.names import QUEUE, TASK_TYPE
from partita.domain.payload import Json
from partita.domain.schema import schema_problems

Parts = dict[str, Any]
Reader = Callable[[Fields, str, NodeDefaults, Expressions], Parts]

TASK_ONLY: Final = ("input", "timeout", "scheduleToStart", "retry", "priority")
"""Fields of a node that only tasks have."""
_NOT_A_TASK: Final[Parts] = {
    "input": None,
    "timeout": None,
    "schedule_to_start_ms": None,
    "retry": (),
    "priority": None,
}


def _task(fields: Fields, _: str, defaults: NodeDefaults, expressions: Expressions) -> Parts:
    task = fields.fields("task", shapes.TASK)
    parts: Parts = {"task": None}
    if task is not None:
        task.need("type", "a type such as charge-card")
        expected = "a type of letters, digits, dots, hyphens, underscores and slashes"
        type_ = task.text("type", expected, longest=128, pattern=TASK_TYPE)
        queue = task.text("queue", QUEUE_EXPECTED, longest=63, pattern=QUEUE)
        parts["task"] = TaskSpec(type_ or "", queue or defaults.queue)
    if not fields.has("retry"):
        parts["retry"] = defaults.retry
    if not fields.has("timeout") and defaults.timeout_ms is not None:
        parts["timeout"] = DurationTemplate.of(defaults.timeout_ms)
    if not fields.has("scheduleToStart"):
        parts["schedule_to_start_ms"] = defaults.schedule_to_start_ms
    del expressions
    return parts


def _switch(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    cases: list[Case] = []
    otherwise = False
    for case in fields.each("switch", shapes.CASE, limits.CASES, least=1):
        if otherwise:
            case.problem("", "is never looked at, since a case without when stands before it; expected that one last")
            otherwise = False
        case.need("next", "a list of nodes; [] chooses nothing")
        cases.append(Case(expressions.condition(case, "when"), case.names("next", limits.NEXT) or ()))
        otherwise = otherwise or not case.has("when")
    return {**_NOT_A_TASK, "switch": tuple(cases)}


def _wait(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    wait = fields.fields("wait", shapes.WAIT)
    if wait is None:
        return _NOT_A_TASK
    _exactly_one(wait, "duration", "until")
    until = expressions.text(wait, "until", "an RFC 3339 time or ${…}", limits.CONDITION)
    if until is not None and until.constant:
        _check_time(wait, until)
    return {**_NOT_A_TASK, "wait": WaitSpec(expressions.duration(wait, "duration"), until)}


def _check_time(wait: Fields, until: Template) -> None:
    try:
        parse_time(until.render({}))
    except ExpressionError as error:
        wait.problem("until", error.message.removeprefix("timestamp: "))


def _exactly_one(fields: Fields, first: str, second: str) -> None:
    if fields.has(first) == fields.has(second):
        fields.problem("", f"expected exactly one of {first} and {second}")


def _event(fields: Fields, name: str, _: NodeDefaults, expressions: Expressions) -> Parts:
    event = fields.fields("waitForEvent", shapes.EVENT)
    if event is None:
        return _NOT_A_TASK
    timeout = expressions.duration(event, "timeout")
    spec = EventSpec(
        alternatives=_alternatives(event, name, expressions),
        any_of=event.has("anyOf"),
        until=expressions.condition(event, "until", "events"),
        on_timeout=_on_timeout(event, expressions),
        ignore_earlier=event.flag("ignoreEarlier") or False,
    )
    return {**_NOT_A_TASK, "event": spec, "timeout": timeout}


def _alternatives(event: Fields, name: str, expressions: Expressions) -> tuple[EventAlternative, ...]:
    if not event.has("anyOf"):
        given = expressions.text(event, "name", "the name of a signal", limits.SHORT)
        own = given or expressions.template(event, "name", name)
        return () if own is None else (EventAlternative(own, _schema(event)),)
    for field in ("name", "schema"):
        if event.has(field):
            event.problem(field, "anyOf excludes name and schema; expected them inside anyOf")
    found: list[EventAlternative] = []
    for entry in event.each("anyOf", shapes.ALTERNATIVE, limits.ALTERNATIVES, least=1):
        entry.need("name", "the name of a signal")
        own = expressions.text(entry, "name", "the name of a signal", limits.SHORT)
        schema = _schema(entry)
        if own is not None:
            found.append(EventAlternative(own, schema))
    return tuple(found)


def _schema(fields: Fields) -> Json | None:
    schema = fields.object("schema")
    if schema is not None:
        fields.problems.extend(schema_problems(schema, fields.at("schema")))
    return schema


def _on_timeout(event: Fields, expressions: Expressions) -> TimeoutRoute | None:
    fields = event.fields("onTimeout", shapes.ON_TIMEOUT)
    if fields is None:
        return None
    if not event.has("timeout"):
        fields.problem("", "is never taken, since there is no timeout; expected waitForEvent.timeout")
    _exactly_one(fields, "output", "next")
    return TimeoutRoute(expressions.object(fields, "output"), fields.names("next", limits.NEXT))


def _compute(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    return {**_NOT_A_TASK, "compute": expressions.object(fields, "compute")}


KINDS: Final[dict[NodeKind, Reader]] = {
    NodeKind.TASK: _task,
    NodeKind.SWITCH: _switch,
    NodeKind.WAIT: _wait,
    NodeKind.WAIT_FOR_EVENT: _event,
    NodeKind.COMPUTE: _compute,
}
"""The reader of every kind."""
