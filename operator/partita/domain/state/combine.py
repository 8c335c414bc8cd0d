"""Several events of one run in one transaction: ``absorb`` and ``merge``.

Invariant: deciding events one after the other on absorbed slices and writing the merged effects once leaves the same
rows as writing each event's effects on its own.
"""

from __future__ import annotations

from partita.domain.state.effects import ChildWait, Consumed, Effects, RecordedSignal, TimerKey
from partita.domain.state.rows import NodeKey, NodeState, WaitRow
from partita.domain.state.slices import Slice


def absorb(slice_: Slice, effects: Effects) -> Slice:
    """The slice as it would be loaded after these effects were written; the given one stays as it is."""
    tasks = slice_.tasks
    outputs = slice_.outputs
    fresh = slice_.run is None
    if effects.tasks:
        made = [key for key in effects.tasks if key not in tasks and key not in effects.unread]
        if made:
            outputs = outputs.union(made)
        tasks = {**tasks, **effects.tasks}
    after = Slice(
        slice_.definition,
        effects.run,
        effects.input or slice_.input,
        tasks,
        slice_.absent,
        slice_.whole or fresh,
        outputs,
        [] if fresh else slice_.timers,
        [] if fresh else slice_.waits,
        [] if fresh else slice_.signals,
        set() if fresh else slice_.leased,
        slice_.seen_signal_ids,
        slice_.versions,
        effects.output or slice_.output,
    )
    _absorb_mailbox(after, effects)
    return after


def _absorb_mailbox(after: Slice, effects: Effects) -> None:
    if effects.clear:
        after.timers, after.waits, after.leased = [], [], set()
    if after.timers is not None and (effects.timers or effects.drop_timers):
        replaced = effects.drop_timers | effects.timers.keys()
        kept = [one for one in after.timers if TimerKey(one.kind, one.node, one.index) not in replaced]
        after.timers = [*kept, *effects.timers.values()]
    if after.waits is not None and (effects.waits or effects.drop_waits or effects.drop_child_waits):
        kept_waits = [wait for wait in after.waits if not _dropped(wait, effects)]
        after.waits = [*kept_waits, *effects.waits]
    if after.signals is not None and (effects.consumed or effects.record_signals):
        taken = {consumed.signal_id for consumed in effects.consumed}
        arrived = [signal.row for signal in effects.record_signals if not signal.consumed_by and not signal.refused]
        after.signals = [signal for signal in (*after.signals, *arrived) if signal.id not in taken]
    if effects.record_signals:
        after.seen_signal_ids = after.seen_signal_ids | {signal.row.id for signal in effects.record_signals}
    if after.leased and effects.drop_work:
        after.leased = after.leased - effects.drop_work


def merge(first: Effects, second: Effects) -> Effects:
    """The effects of two events in a row as one; ``first`` is used up, the reply is the second's."""
    second = second.full()
    second.new_run |= first.new_run
    second.input = second.input or first.input
    second.output = second.output or first.output
    _merge_work(first, second)
    second.tasks = {**first.tasks, **second.tasks}
    second.unread |= first.unread
    second.visible |= first.visible
    second.urgent |= first.urgent
    second.history = first.history + second.history
    second.messages = first.messages + second.messages
    _merge_timers_and_waits(first, second)
    consumed = [one for one in second.consumed if not settle_recorded(first.record_signals, one)]
    second.consumed = first.consumed + consumed
    second.record_signals = first.record_signals + second.record_signals
    return second


def _merge_work(first: Effects, second: Effects) -> None:
    """``second.tasks`` are still its own: hundreds of items may be queued already, and few of them change again."""
    if not (second.clear or second.withdraw):
        queued = first.enqueue
        for key in (*second.drop_work, *second.tasks):
            if key in queued and not _still_queued(key, second):
                del queued[key]
        queued.update(second.enqueue)
        second.enqueue = queued
    second.drop_work |= first.drop_work
    second.withdraw |= first.withdraw
    second.clear |= first.clear


def _still_queued(key: NodeKey, second: Effects) -> bool:
    """An attempt may be queued again by one event (a resumption) and end by the next, whose fence came before both."""
    row = second.tasks.get(key)
    return key not in second.drop_work and (row is None or row.state is NodeState.QUEUED)


def _merge_timers_and_waits(first: Effects, second: Effects) -> None:
    if not second.clear:
        timers = {key: row for key, row in first.timers.items() if key not in second.drop_timers}
        second.timers = {**timers, **second.timers}
        waits = [wait for wait in first.waits if not _dropped(wait, second)]
        second.waits = waits + second.waits
    second.drop_timers |= first.drop_timers
    second.drop_waits |= first.drop_waits
    second.drop_child_waits |= first.drop_child_waits


def _dropped(wait: WaitRow, effects: Effects) -> bool:
    if wait.child is None:
        return NodeKey(wait.node, wait.index) in effects.drop_waits
    return ChildWait(wait.child, wait.node, wait.index) in effects.drop_child_waits


def settle_recorded(recorded: list[RecordedSignal], taken: Consumed) -> bool:
    """If the signal is only now being recorded, record it as taken (or refused) at once; whether it was."""
    for position, signal in enumerate(recorded):
        if signal.row.id == taken.signal_id:
            consumer = "" if taken.refused else taken.node
            recorded[position] = RecordedSignal(signal.row, consumer, taken.refused)
            return True
    return False
