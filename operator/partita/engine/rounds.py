"""Deciding a whole batch: load what all runs need, decide, and again for those that need more.

Invariant: ``decide`` sees a consistent slice and is called from the beginning of its run's turns whenever rows were
added, so that a decision never rests on half of what it asked for. Trade-off: the usual event is foreseen and decided
once; a run that surprises is decided again rather than in the middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from partita.domain.errors import EngineError
from partita.domain.model import Definition
from partita.domain.names import SIGNAL_IDENTITY
from partita.domain.state import absorb, decide, foreseen, merge
from partita.domain.state.effects import Effects
from partita.domain.state.events import ControlsApplied, Event, SignalReceived
from partita.domain.state.rows import NodeKey, TaskRow
from partita.domain.state.slices import Context, Need, Slice
from partita.engine.attempts_ahead import AttemptsAhead
from partita.engine.purse import Purse
from partita.engine.submissions import Happening, Submission
from partita.engine.turns import DeliveryRefusedError, Group, OverspentError, PoisonedError, Turn
from partita.settings import EngineSettings
from partita.store import slices
from partita.store.database import Connection
from partita.store.slices import TaskRequest
from partita.store.sql import Sql

_NOTHING: Final = Need()
_SMALL_RUN = 64
"""Nodes up to which a run that surprised is loaded whole, if it has no loops."""
_SMALLEST = 16
"""Nodes up to which all rows are looked up when any is."""
_PORTION = 8
"""Whole runs that are read at first; then four times as many."""
_MOST_ROWS = 20_000
"""Rows of whole runs that one transaction reads, and may have to write, unless they are all of one run."""
_LAST_ROUNDS = 4
"""Rounds that follow the loading of whole runs; payloads may still be asked for one after the other."""


async def decide_batch(
    connection: Connection, sql: Sql, groups: Sequence[Group], context: Context, settings: EngineSettings
) -> None:
    """Fill in the effects of every group; raises PoisonedError for events that cannot be decided, and OverspentError
    when there are too many for the time that a transaction may hold its locks.
    """
    rounds, purse = settings.decide_rounds, Purse(groups, settings.decide_ms / 1000)
    failures: dict[Submission, Exception] = {}
    needs = [(group, _foreseen(group, failures)) for group in groups]
    if len(groups) == 1:
        needs = [(group, further(need, group.slice.definition)) for group, need in needs]
    for number in range(1, rounds + _LAST_ROUNDS + 1):
        await _load(connection, sql, [(group, need) for group, need in needs if need])
        with purse:
            asked = [(group, _decide(group, context, failures, purse)) for group, _ in needs]
        needs = [(group, _widen(group, need, number, rounds)) for group, need in asked if need is not None]
        if not needs:
            break
    for group, need in needs:
        text = f"run {group.run_id}: the decision asked for more rows without end ({need})"
        if len(group.turns) > 1:
            raise EngineError(text)  # too many events at once: the batch is halved, and nobody is to blame
        failures[group.turns[0].submission] = EngineError(text)
    if failures:
        raise PoisonedError(failures)


def further(need: Need, definition: Definition) -> Need:
    """Of a lone run that is small: all rows at once, so that its next reports can be decided from memory."""
    if not need or len(definition.nodes) > _SMALLEST or not _is_small(definition):
        return need
    rows = need.rows.union(map(NodeKey, definition.nodes))
    return Need(rows, need.outputs, need.input, need.whole, need.mailbox, need.versions)


def _foreseen(group: Group, failures: dict[Submission, Exception]) -> Need:
    """What the turns of one run will probably read; nobody may change the answer."""
    if group.slice.run is None or group.remembered:
        return _NOTHING
    needs = []
    for turn in group.turns:
        try:
            needs.append(foreseen(group.slice.definition, turn.event or _event(turn)))
        except Exception as error:  # noqa: BLE001  # as for decisions
            failures[turn.submission] = error
    if len(needs) == 1:
        return needs[0]
    together = Need()
    for need in needs:
        together.merge(need)
    return together


def _decide(group: Group, context: Context, failures: dict[Submission, Exception], purse: Purse) -> Need | None:
    """Decide the turns of one run, each on what the ones before left behind; the rows that lack, if any."""
    current, merged, last = group.slice, None, len(group.turns) - 1
    attempts = AttemptsAhead(group.slice, group.turns) if last else None
    for number, turn in enumerate(group.turns):
        if turn.submission in failures:
            return None
        purse.check()
        try:
            event = turn.event or _event(turn)
            if attempts is not None:
                current = attempts.seen_by(current, event)
            decision = decide(current, event, context)
            if isinstance(decision, Need):
                return decision
            if decision.reply.outcome == "refused":
                _keep_delivery(turn, decision)
            turn.decided = decision
            if number < last:
                current = absorb(current, decision)
            merged = decision if merged is None else merge(merged, decision)
        except Exception as error:  # noqa: BLE001  # whatever a decision raises must not fail its neighbours
            failures[turn.submission] = error
            return None
    group.effects = merged
    return None


def _keep_delivery(turn: Turn, decision: Effects) -> None:
    """The inbox row of what a run refuses must not go without a trace; a refused signal on record is one. A message
    that comes too late for its run has nobody to tell."""
    one = turn.submission
    if isinstance(one, Happening) and one.inbox_id is not None and not (one.is_message or decision.record_signals):
        raise DeliveryRefusedError(one.run_id, decision.reply)


def _event(turn: Turn) -> Event:
    if turn.event is None:
        raise EngineError(f"run {turn.submission.run_id}: a turn without an event was to be decided")
    return turn.event


def _widen(group: Group, need: Need, number: int, rounds: int) -> Need:
    """The later the round, the more is loaded at once, and what one event of a loop wants the others will too."""
    if need.outputs and len(group.turns) > 1:
        need.outputs |= _following(need.outputs, len(group.turns))
    if need.rows and _is_small(group.slice.definition):
        need.whole = True
    if number >= rounds:
        need.whole = need.mailbox = need.input = True
    return need


def _is_small(definition: Definition) -> bool:
    """Whether a run has few rows; a loop may have 10,000."""
    nodes = definition.nodes
    return len(nodes) <= _SMALL_RUN and not any(node.for_each or node.repeat for node in nodes.values())


def _following(keys: Iterable[NodeKey], count: int) -> set[NodeKey]:
    """The items that come after these: each of several events that end an item starts the next one."""
    last: dict[str, int] = {}
    for node, index in keys:
        if index >= 0:
            last[node] = max(last.get(node, 0), index)
    return {NodeKey(node, index + step) for node, index in last.items() for step in range(1, count)}


def give(slice_: Slice, asked: Iterable[TaskRequest], rows: Iterable[TaskRow]) -> None:
    """Put what was read before the first decision into a slice: the keys that were looked up, the rows that exist."""
    tasks = slice_.tasks
    for task in rows:
        tasks[task.key] = task
    for _, node, index, payload in asked:
        key = NodeKey(node, index)
        if payload:
            slice_.outputs.add(key)
        if key not in tasks:
            slice_.absent.add(key)


async def _load(connection: Connection, sql: Sql, needs: list[tuple[Group, Need]]) -> None:
    """One statement for each kind of row that any run needs."""
    if not needs:
        return
    by_run = {group.run_id: group for group, _ in needs}
    whole = [group.run_id for group, need in needs if need.whole and not group.slice.whole]
    if whole:
        await _load_whole_runs(connection, sql, whole, by_run)
    await _load_tasks(connection, sql, needs, by_run)
    inputs = [group.run_id for group, need in needs if need.input and group.slice.input is None]
    if inputs:
        for run_id, (input_, output) in (await slices.load_inputs(connection, sql, inputs)).items():
            by_run[run_id].slice.input, by_run[run_id].slice.output = input_, output
    boxes = [group.run_id for group, need in needs if need.mailbox and group.slice.timers is None]
    if boxes:
        await _load_mailboxes(connection, sql, boxes, by_run)
    await _load_versions(connection, sql, needs)


async def _load_whole_runs(connection: Connection, sql: Sql, ids: list[UUID], by_run: dict[UUID, Group]) -> None:
    """In growing portions, so that runs that are too large for one transaction are noticed before all are read; raises
    OverspentError for them.
    """
    loaded = first = 0
    size = _PORTION
    while first < len(ids):
        portion = ids[first : first + size]
        rows = await slices.load_whole_runs(connection, sql, portion)
        _store(by_run, rows, payload=False)
        for run_id in portion:
            by_run[run_id].slice.whole = True
        loaded, first, size = loaded + len(rows), first + len(portion), size * 4
        if loaded > _MOST_ROWS and first > 1:
            turns = sum(len(by_run[run_id].turns) for run_id in ids[:first])
            raise OverspentError(max(1, turns * _MOST_ROWS // loaded))


async def _load_tasks(
    connection: Connection, sql: Sql, needs: list[tuple[Group, Need]], by_run: dict[UUID, Group]
) -> None:
    wanted: list[TaskRequest] = []
    asked: list[tuple[Slice, NodeKey]] = []
    for group, need in needs:
        slice_, run_id = group.slice, group.run_id
        for key in need.outputs:
            if key not in slice_.outputs:
                slice_.outputs.add(key)
                wanted.append(TaskRequest(run_id, key.node, key.index, payload=True))
                asked.append((slice_, key))
        if slice_.whole:
            continue
        for key in need.rows:
            if key not in slice_.outputs and key not in slice_.tasks and key not in slice_.absent:
                wanted.append(TaskRequest(run_id, key.node, key.index, payload=False))
                asked.append((slice_, key))
    if not wanted:
        return
    _store(by_run, await slices.load_tasks(connection, sql, wanted))
    for slice_, key in asked:
        if key not in slice_.tasks:
            slice_.absent.add(key)


def _store(by_run: dict[UUID, Group], rows: Iterable[tuple[UUID, TaskRow]], *, payload: bool = True) -> None:
    for run_id, task in rows:
        slice_, key = by_run[run_id].slice, task.key
        if payload or key not in slice_.outputs:
            slice_.tasks[key] = task


async def _load_mailboxes(connection: Connection, sql: Sql, ids: list[UUID], by_run: dict[UUID, Group]) -> None:
    for run_id, box in (await slices.load_mailboxes(connection, sql, ids)).items():
        slice_ = by_run[run_id].slice
        slice_.timers, slice_.waits, slice_.leased, slice_.signals = box.timers, box.waits, box.leased, box.signals
    sent = [(run_id, signal) for run_id in ids for turn in by_run[run_id].turns for signal in _signals(turn.event)]
    if sent:
        for run_id, signal_id in await slices.seen_signals(connection, sql, sent):
            by_run[run_id].slice.seen_signal_ids.add(signal_id)


async def _load_versions(connection: Connection, sql: Sql, needs: list[tuple[Group, Need]]) -> None:
    """Versions of definitions whose runs are to be started as children."""
    wanted = [(group.version.definition.namespace, name) for group, need in needs for name in need.versions]
    if not wanted:
        return
    found = await slices.child_versions(connection, sql, list(dict.fromkeys(wanted)))
    for group, need in needs:
        namespace = group.version.definition.namespace
        group.slice.versions |= {name: found[namespace, name] for name in need.versions}


def _signals(event: Event | None) -> list[str]:
    """Ids of the signals that an event carries. One of a wrong form cannot have been seen, and the database may not
    even take it as a question; the decision refuses it.
    """
    signals = event.signals if isinstance(event, ControlsApplied) else (event,)
    ids = [signal.id for signal in signals if isinstance(signal, SignalReceived)]
    return [id_ for id_ in ids if not SIGNAL_IDENTITY.problem(id_)]
