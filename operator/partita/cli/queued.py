"""What a run waits for whose tasks wait in queues: a worker.

Invariant: said only where nothing runs and no signal or timer is waited for, so that it is the one thing that holds the
run up. Trade-off: said from the database alone, where it is true at the moment of asking. The status of an object is
not written again when a worker takes a task, so it would go on saying so while the task runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.domain.state.rows import TERMINAL, NodeState, RunStatus
from partita.store.views import NodeView


def waiting_for_worker(status: RunStatus, nodes: Sequence[NodeView]) -> str:
    """The queues, in words, such as ``a worker (queue default)``; empty while anything runs."""
    if status in TERMINAL or status is RunStatus.SUSPENDED or any(node.state == "Running" for node in nodes):
        return ""
    queues = list(dict.fromkeys(node.queue for node in nodes if node.state == NodeState.QUEUED))
    if not queues:
        return ""
    more = f" and {len(queues) - 2} more" if len(queues) > 2 else ""
    return f"a worker (queue {', '.join(queues[:2])}{more})"
