"""Starts of one batch that begin alike: one of them is decided and written, the database copies its rows.

Purpose: thousands of runs of one definition are started for little more than their own rows. Invariant: a copied run
has exactly the rows that its own decision would have made, which a test compares; its id, name, input, labels and key
are its own. Trade-off: copying takes statements of its own, one a table and kind, so that only large kinds are copied,
and only so many of them in a transaction.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from partita.domain.errors import EngineError
from partita.domain.state.likeness import begins_alike, is_ordinary
from partita.engine.requests import StartReply
from partita.engine.submissions import Start
from partita.engine.turns import CollidedError, Group, PoisonedError, Turn
from partita.store import copies
from partita.store.copies import Copy, context_text, labels
from partita.store.database import Connection
from partita.store.sequence import ReadySequence
from partita.store.sql import Sql

Asked = tuple[Turn, Start]

_FEWEST = 8
"""Starts of a kind that are worth the statements of copying them."""
_KINDS = 4
"""Kinds that one transaction copies."""


@dataclass(slots=True, eq=False)
class Likeness:
    """Starts of one kind: the first is decided, the others are its copies."""

    first: Group
    others: Sequence[Asked]


def kinds_of(asked: Sequence[Asked]) -> tuple[list[Asked], list[list[Asked]]]:
    """The starts that are decided by themselves, and the large kinds of those that begin alike."""
    if len(asked) < _FEWEST:
        return list(asked), []
    kinds: dict[Hashable, list[Asked]] = {}
    for one in asked:
        kinds.setdefault(_kind(one[1]), []).append(one)
    alone = kinds.pop(None, [])
    large = sorted(kinds.values(), key=len, reverse=True)
    chosen = [kind for kind in large[:_KINDS] if _is_copied(kind)]
    taken = {id(kind) for kind in chosen}
    return alone + [one for kind in large if id(kind) not in taken for one in kind], chosen


def _kind(start: Start) -> Hashable:
    """What starts that begin alike have in common; None for one that is not ordinary."""
    event, request = start.event, start.request
    if request.cr is not None or not is_ordinary(event):
        return None
    return id(start.version), event.namespace, event.priority, event.timeout_ms, request.started_by


def _is_copied(kind: Sequence[Asked]) -> bool:
    return len(kind) >= _FEWEST and begins_alike(kind[0][1].version.definition)


@contextmanager
def sharing_failures(alike: Sequence[Likeness]) -> Iterator[None]:
    """What cannot be decided for the first of a kind cannot be decided for the others either."""
    try:
        yield
    except PoisonedError as poisoned:
        for one in alike:
            error = poisoned.failures.get(one.first.turns[0].submission)
            if error is not None:
                poisoned.failures.update((start, error) for _, start in one.others)
        raise


async def copy(connection: Connection, sql: Sql, one: Likeness, sequence: ReadySequence) -> None:
    """Write the others of a kind, whose first has been written by this transaction.

    Raises CollidedError when another transaction started one of them meanwhile.
    """
    effects = one.first.effects
    if effects is None:
        raise EngineError(f"run {one.first.run_id}: was to be copied and has not been decided")
    rows = [_copy(start) for _, start in one.others]
    first_seq = sequence.reserve(len(rows) * len(effects.enqueue))
    if not await copies.insert(connection, sql, one.first.run_id, rows, first_seq, timers=bool(effects.timers)):
        raise CollidedError
    status = effects.run.status
    for turn, start in one.others:
        turn.settle(StartReply(start.run_id, created=True, status=status))


def _copy(start: Start) -> Copy:
    request = start.request
    return Copy(
        start.run_id,
        request.request_id,
        start.event.name,
        request.idempotency_key,
        *labels(request.tags, request.attributes),
        context_text(start.input, start.version.config),
    )
