"""Reads a WorkflowRun."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from partita.domain.errors import Problem
from partita.domain.expressions import ExpressionError
from partita.domain.expressions.functions.times import parse_time
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.definition import header_problems
from partita.domain.manifest.reader import Fields
from partita.domain.manifest.reported import reported
from partita.domain.manifest.shorthands import kind_for_text
from partita.domain.manifest.text import text_problems
from partita.domain.names import OBJECT_NAME, ONE_LINE, PARAGRAPH, SIGNAL_ID
from partita.domain.payload import Json, kind_of

KIND: Final = "WorkflowRun"
_RUN_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")


@dataclass(frozen=True, slots=True)
class CancelControl:
    """The ``cancel`` of a run."""

    mode: Literal["Graceful", "Now"] = "Graceful"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SignalControl:
    """One entry of ``signals``."""

    id: str
    name: str
    payload: Json


@dataclass(frozen=True, slots=True)
class RunManifest:
    """A WorkflowRun's spec after parsing. Durations are milliseconds."""

    name: str
    namespace: str
    definition: str
    """Name of the definition."""
    version: int | None = None
    """None: the deployed one."""
    input: Mapping[str, Json] = field(default_factory=dict)
    run_id: UUID | None = None
    idempotency_key: str | None = None
    start_at: datetime | None = None
    priority: int = 0
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    cancel: CancelControl | None = None
    cancel_nodes: tuple[str, ...] = ()
    """Nodes to cancel while the run goes on."""
    signals: tuple[SignalControl, ...] = ()


def parse_run(manifest: Mapping[str, Any]) -> tuple[RunManifest | None, tuple[Problem, ...]]:
    """A run and no problems, or None and every problem with its path. The input is not checked against its schema."""
    problems: list[Problem] = [*header_problems(manifest, KIND)]
    spec = manifest.get("spec")
    run: RunManifest | None = None
    if isinstance(spec, dict):
        broken = text_problems(spec, "spec", 8 * limits.INPUT_BYTES)
        problems.extend(broken)
        if not broken:
            run = _read(Fields(spec, "spec", shapes.RUN, problems), manifest.get("metadata"))
    else:
        problems.append(Problem("spec", f"is {kind_of(spec)}; expected an object with definitionRef"))
    if problems:
        return None, reported(problems, manifest)
    return run, ()


def _read(fields: Fields, metadata: Json) -> RunManifest:
    metadata = metadata if isinstance(metadata, dict) else {}
    name, version = _definition_ref(fields)
    run_id = fields.text("runId", "a UUID of version 7 in small letters", longest=36, pattern=_RUN_ID)
    return RunManifest(
        name=str(metadata.get("name") or ""),
        namespace=str(metadata.get("namespace") or "default"),
        definition=name or "",
        version=version,
        input=_input(fields),
        run_id=None if run_id is None else UUID(run_id),
        idempotency_key=fields.text("idempotencyKey", "a text in one line", longest=255, pattern=ONE_LINE),
        start_at=_time(fields, "startAt"),
        priority=fields.integer("priority", -2, 2) or 0,
        tags=_tags(fields),
        attributes=_attributes(fields),
        timeout_ms=fields.duration("timeout"),
        ttl_seconds_after_finished=fields.integer("ttlSecondsAfterFinished", 0, limits.TTL_SECONDS),
        suspend=fields.flag("suspend") or False,
        cancel=_cancel(fields),
        cancel_nodes=_cancel_nodes(fields),
        signals=_signals(fields),
    )


def _definition_ref(fields: Fields) -> tuple[str | None, int | None]:
    if not fields.need("definitionRef", "{name: the definition's name}"):
        return None, None
    reference = fields.fields("definitionRef", shapes.DEFINITION_REF)
    if reference is None:
        return None, None
    reference.need("name", "the definition's name")
    expected = "the name of a WorkflowDefinition, such as order-fulfilment"
    name = reference.text("name", expected, longest=253, pattern=OBJECT_NAME)
    return name, reference.integer("version", 1, limits.VERSION)


def _input(fields: Fields) -> dict[str, Json]:
    value = fields.object("input")
    if value is None:
        return {}
    broken = text_problems(value, fields.at("input"), limits.INPUT_BYTES)
    fields.problems.extend(broken)
    return value


def _time(fields: Fields, name: str) -> datetime | None:
    value = fields.text(name, "an RFC 3339 time such as 2030-01-01T06:00:00Z", longest=64)
    if value is None:
        return None
    try:
        return parse_time(value)
    except ExpressionError as error:
        fields.problem(name, error.message.removeprefix("timestamp: "))
        return None


def _tags(fields: Fields) -> tuple[str, ...]:
    tags = fields.texts("tags", 32, "a word of 1 to 63 characters", ONE_LINE, longest=63) or ()
    fields.check_doubles("tags", tags)
    return tags


def _attributes(fields: Fields) -> dict[str, str]:
    value = fields.object("attributes") or {}
    if len(value) > 32:
        fields.problem("attributes", f"has {len(value)} entries; expected at most 32")
    good: dict[str, str] = {}
    for key, item in value.items():
        if not 1 <= len(key) <= 63:
            fields.problem("attributes", f"has the name {key[:80]!r}; expected 1 to 63 characters")
        elif not isinstance(item, str) or len(item) > 1024 or (item and not ONE_LINE.match(item)):
            shown = repr(item[:80]) if isinstance(item, str) else kind_for_text(item)
            fields.problem(f"attributes.{key}", f"is {shown}; expected a text in one line, at most 1,024 characters")
        else:
            good[key] = item
    return good


def _cancel(fields: Fields) -> CancelControl | None:
    cancel = fields.fields("cancel", shapes.CANCEL)
    if cancel is None:
        return None
    now = cancel.choice("mode", "Graceful", "Now") == "Now"
    reason = cancel.text("reason", "a text", longest=1024, shortest=0, pattern=PARAGRAPH)
    return CancelControl("Now" if now else "Graceful", reason or "")


def _cancel_nodes(fields: Fields) -> tuple[str, ...]:
    names = fields.names("cancelNodes", limits.CANCEL_NODES) or ()
    fields.check_doubles("cancelNodes", names)
    return names


def _signals(fields: Fields) -> tuple[SignalControl, ...]:
    found: dict[str, SignalControl] = {}
    for signal in fields.each("signals", shapes.SIGNAL, 64):
        signal.need("id", "an id that is unique in the run")
        signal.need("name", "the name that a waitForEvent waits for")
        id_ = signal.text("id", "letters, digits, dots, hyphens and colons", longest=63, pattern=SIGNAL_ID)
        name = signal.text("name", "a name in one line", longest=63, pattern=ONE_LINE)
        payload = signal.object("payload")
        if id_ in found:
            signal.problem("id", f"{id_!r} is the id of another signal already; expected another")
        elif id_ is not None and name is not None:
            found[id_] = SignalControl(id_, name, {} if payload is None else payload)
    return tuple(found.values())
