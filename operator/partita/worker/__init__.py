"""The worker SDK: functions that execute tasks. The process that calls them is ``partita.worker.runtime``.

    from partita.worker import Fatal, Retryable, TaskContext, Tasks

    app = Tasks()

    @app.task("charge-card")
    async def charge(ctx: TaskContext, customer: str, amount: int) -> dict[str, str]:
        ...

Invariant: a task runs at least once and is recorded exactly once. Trade-off: so a task's own effects must stand being
repeated; ``TaskContext.idempotency_key`` is made for that.
"""

from partita.worker.context import TaskCancelled, TaskContext
from partita.worker.failures import Fatal, Retryable, TaskError
from partita.worker.registry import Tasks, load, task

__all__ = ["Fatal", "Retryable", "TaskCancelled", "TaskContext", "TaskError", "Tasks", "load", "task"]
