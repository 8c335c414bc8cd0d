"""Retry tiers, error routes and a definition's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from partita.domain import error_types
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.reader import Fields
from partita.domain.model import Route, TaskSpec, Tier
from partita.domain.names import QUEUE, QUEUE_NAME, TASK_TYPE
from partita.domain.payload import Json

ERROR_TYPES: Final = "an error type such as timeout, card_declined or http_503"
QUEUE_EXPECTED: Final = f"{QUEUE_NAME.expected}, at most {QUEUE_NAME.longest}"


@dataclass(frozen=True, slots=True)
class NodeDefaults:
    """What ``spec.defaults`` gives to nodes."""

    timeout_ms: int | None = None
    schedule_to_start_ms: int | None = None
    queue: str = "default"
    retry: tuple[Tier, ...] = ()
    config: Json = None
    """``spec.config``, which the expressions of every node may read; None: it cannot be read."""


def read_task(fields: Fields, defaults: NodeDefaults) -> TaskSpec | None:
    """``task``, of a node or of its undo."""
    task = fields.fields("task", shapes.TASK)
    if task is None:
        return None
    task.need("type", "a type such as charge-card")
    expected = "a type of letters, digits, dots, hyphens, underscores and slashes"
    type_ = task.text("type", expected, longest=128, pattern=TASK_TYPE)
    queue = task.text("queue", QUEUE_EXPECTED, longest=63, pattern=QUEUE)
    return TaskSpec(type_ or "", queue or defaults.queue)


def read_defaults(spec: Fields, expressions: Expressions) -> NodeDefaults:
    """``spec.defaults``; its conditions may not name nodes, since they would become edges of every task."""
    fields = spec.fields("defaults", shapes.DEFAULTS)
    if fields is None:
        return NodeDefaults()
    return NodeDefaults(
        timeout_ms=fields.duration("timeout"),
        schedule_to_start_ms=fields.duration("scheduleToStart"),
        queue=fields.text("queue", QUEUE_EXPECTED, longest=63, pattern=QUEUE) or "default",
        retry=read_tiers(fields, expressions) or (),
    )


def read_tiers(fields: Fields, expressions: Expressions, more: frozenset[str] = frozenset()) -> tuple[Tier, ...] | None:
    """``retry``; None when it is left out, () when it is an empty list. ``more`` are variables of a loop."""
    if not fields.has("retry"):
        return None
    return tuple(_tier(tier, expressions, more) for tier in fields.each("retry", shapes.TIER, limits.TIERS))


def _tier(fields: Fields, expressions: Expressions, more: frozenset[str]) -> Tier:
    retries = fields.integer("maxRetries", 0, 100_000)
    initial = fields.duration("initialDelay")
    longest = fields.duration("maxDelay")
    multiplier = fields.number("multiplier", 1, 100)
    jitter = fields.number("jitter", 0, 1)
    initial = 1_000 if initial is None else initial
    return Tier(
        match=_matches(fields),
        when=expressions.condition(fields, "when", "error", *more),
        max_retries=limits.UNLIMITED_RETRIES if retries is None else retries,
        initial_delay_ms=initial,
        multiplier=2.0 if multiplier is None else multiplier,
        max_delay_ms=max(300_000, initial) if longest is None else longest,
        max_elapsed_ms=fields.duration("maxElapsed"),
        jitter=0.2 if jitter is None else jitter,
    )


def _matches(fields: Fields) -> tuple[str, ...]:
    form = error_types.PATTERN, error_types.LONGEST, spelled_so
    found = fields.texts("match", limits.MATCHES, ERROR_TYPES, *form, lint=True)
    return () if found is None or found == (error_types.ANY,) else found


def spelled_so(text: str) -> str:
    """A hint for a type that is spelled like a class, which is how workers do not report it."""
    other = error_types.type_named(text)
    return f" (did you mean {other!r}?)" if other else ""


def read_routes(fields: Fields, expressions: Expressions) -> tuple[Route, ...]:
    """``onError``."""
    routes: list[Route] = []
    for given in fields.each("onError", shapes.ROUTE, limits.ROUTES):
        route = _route(given, expressions)
        before = next((index for index, earlier in enumerate(routes) if _takes_all(earlier, route)), None)
        if before is not None:
            message = f"is never looked at, since onError[{before}] takes all of it; expected it before"
            given.problem("", message, lint=True)
        routes.append(route)
    return tuple(routes)


def _takes_all(earlier: Route, later: Route) -> bool:
    """Whether a route leaves nothing to a later one."""
    if earlier.when is not None:
        return False
    return all(
        not earlier.match or error_types.ANY in earlier.match
        if name == error_types.ANY
        else error_types.matches(earlier.match, name)
        for name in later.match or (error_types.ANY,)
    )


def _route(fields: Fields, expressions: Expressions) -> Route:
    fields.need("next", "a list of nodes; [] swallows the error")
    return Route(
        match=_matches(fields),
        when=expressions.condition(fields, "when", "error"),
        next=fields.names("next", limits.NEXT) or (),
    )
