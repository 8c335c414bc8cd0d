"""The kinds of nodes, one reader each.

Invariant: a reader returns the fields of ``Node`` that its kind sets or overrides; kinds of later versions are added to
the table and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from partita.domain import error_types
from partita.domain.expressions import DurationTemplate, ExpressionError, Template
from partita.domain.expressions.functions.times import parse_time
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.event import read_event
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.policies import NodeDefaults, read_task, spelled_so
from partita.domain.manifest.reader import Fields
from partita.domain.model import Case, FailSpec, NodeKind, SucceedSpec, WaitSpec, WorkflowSpec
from partita.domain.names import OBJECT_NAME

Parts = dict[str, Any]
Reader = Callable[[Fields, str, NodeDefaults, Expressions], Parts]

_NOT_WORK: Final[Parts] = {
    "input": None,
    "timeout": None,
    "schedule_to_start_ms": None,
    "retry": (),
    "priority": None,
    "for_each": None,
    "repeat": None,
    "undo": None,
}
"""Fields of a node that neither a task nor a child run is."""


def _task(fields: Fields, _: str, defaults: NodeDefaults, __: Expressions) -> Parts:
    parts: Parts = {"task": read_task(fields, defaults)}
    if not fields.has("retry"):
        parts["retry"] = defaults.retry
    if not fields.has("timeout") and defaults.timeout_ms is not None:
        parts["timeout"] = DurationTemplate.of(defaults.timeout_ms)
    if not fields.has("scheduleToStart"):
        parts["schedule_to_start_ms"] = defaults.schedule_to_start_ms
    return parts


def _workflow(fields: Fields, _: str, __: NodeDefaults, ___: Expressions) -> Parts:
    parts: Parts = {"schedule_to_start_ms": None}
    if not fields.has("retry"):
        parts["retry"] = ()
    child = fields.fields("workflow", shapes.WORKFLOW)
    if child is None:
        return parts
    child.exactly_one("name", "subflow")
    expected = "the name of a WorkflowDefinition, such as order-fulfilment"
    name = child.text("name", expected, longest=253, pattern=OBJECT_NAME)
    version = child.integer("version", 1, limits.VERSION)
    if child.has("version") and not child.has("name"):
        child.problem("version", "a subflow has the version of its definition; expected version only beside name")
    subflow = child.identifier("subflow")
    detach = child.flag("detach") or False
    if detach and fields.has("undo"):
        fields.problem("undo", "a detached child is not waited for, so nothing can be reversed; expected no detach")
    return {**parts, "workflow": WorkflowSpec(name or "", version, subflow or "", detach)}


def _switch(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    cases: list[Case] = []
    otherwise = False
    for case in fields.each("switch", shapes.CASE, limits.CASES, least=1):
        if otherwise:
            message = "is never looked at, since a case without when stands before it; expected that one last"
            case.problem("", message, lint=True)
            otherwise = False
        case.need("next", "a list of nodes; [] chooses nothing")
        cases.append(Case(expressions.condition(case, "when"), case.names("next", limits.NEXT) or ()))
        otherwise = otherwise or not case.has("when")
    return {**_NOT_WORK, "switch": tuple(cases)}


def _wait(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    wait = fields.fields("wait", shapes.WAIT)
    if wait is None:
        return _NOT_WORK
    wait.exactly_one("duration", "until")
    until = expressions.text(wait, "until", "an RFC 3339 time or ${…}", limits.CONDITION)
    if until is not None and until.constant:
        _check_time(wait, until)
    return {**_NOT_WORK, "wait": WaitSpec(expressions.duration(wait, "duration"), until)}


def _check_time(wait: Fields, until: Template) -> None:
    try:
        parse_time(until.render({}))
    except ExpressionError as error:
        wait.problem("until", error.message.removeprefix("timestamp: "))


def _event(fields: Fields, name: str, _: NodeDefaults, expressions: Expressions) -> Parts:
    event = fields.fields("waitForEvent", shapes.EVENT)
    if event is None:
        return _NOT_WORK
    timeout = expressions.duration(event, "timeout")
    return {**_NOT_WORK, "event": read_event(event, name, expressions), "timeout": timeout}


def _compute(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    return {**_NOT_WORK, "compute": expressions.object(fields, "compute")}


def _fail(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    fail = fields.fields("fail", shapes.FAIL)
    if fail is None:
        return _NOT_WORK
    fail.need("type", "an error type such as refused")
    expected = "an error type such as refused or over_budget"
    type_ = fail.text("type", expected, longest=error_types.LONGEST, pattern=error_types.PATTERN, meant=spelled_so)
    if type_ is not None and error_types.is_reserved(type_):
        fail.problem("type", f"{type_!r} is given by the engine only; expected a type of your own, such as refused")
    message = expressions.text(fail, "message", "a text", limits.MESSAGE, shortest=0)
    return {**_NOT_WORK, "fail": FailSpec(type_ or "", message)}


def _succeed(fields: Fields, _: str, __: NodeDefaults, expressions: Expressions) -> Parts:
    succeed = fields.fields("succeed", shapes.SUCCEED)
    if succeed is None:
        return _NOT_WORK
    return {**_NOT_WORK, "succeed": SucceedSpec(expressions.object(succeed, "output"))}


KINDS: Final[dict[NodeKind, Reader]] = {
    NodeKind.TASK: _task,
    NodeKind.SWITCH: _switch,
    NodeKind.WAIT: _wait,
    NodeKind.WAIT_FOR_EVENT: _event,
    NodeKind.COMPUTE: _compute,
    NodeKind.WORKFLOW: _workflow,
    NodeKind.FAIL: _fail,
    NodeKind.SUCCEED: _succeed,
}
"""The reader of every kind."""
