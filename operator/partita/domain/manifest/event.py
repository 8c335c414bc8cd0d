"""Reads waitForEvent."""

from __future__ import annotations

from partita.domain.manifest import limits, shapes
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.reader import Fields
from partita.domain.model import EventAlternative, EventSpec, TimeoutRoute
from partita.domain.payload import Json
from partita.domain.schema import schema_problems


def read_event(event: Fields, name: str, expressions: Expressions) -> EventSpec:
    """``waitForEvent``, but for its timeout; a signal that is not named has the name of the node."""
    return EventSpec(
        alternatives=_alternatives(event, name, expressions),
        any_of=event.has("anyOf"),
        until=expressions.condition(event, "until", "events"),
        on_timeout=_on_timeout(event, expressions),
        ignore_earlier=event.flag("ignoreEarlier") or False,
    )


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
    fields.exactly_one("output", "next")
    return TimeoutRoute(expressions.object(fields, "output"), fields.names("next", limits.NEXT))
