"""Executes one attempt and says how it ended.

Invariant: whatever the function does, the attempt ends in exactly one outcome. An async function runs on the event loop
and is cancelled when the attempt is given up; a function in a thread cannot be stopped, so it is told (``cancelled``)
and keeps its slot until it returns, while its outcome is decided without it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

from partita.domain.error_types import OUTPUT_TOO_LARGE, TIMEOUT, UNKNOWN_TASK_TYPE
from partita.domain.errors import InvalidError
from partita.domain.payload import NULL, Json, Payload, encode
from partita.domain.record import record
from partita.domain.state.rows import ErrorInfo
from partita.engine.requests import ClaimedTask
from partita.worker.context import TaskCancelled, TaskContext
from partita.worker.failures import BuiltinError, Failure, failure_of
from partita.worker.registry import TaskFunction
from partita.worker.subtasks import GUARDING
from partita.worker.timeouts import Timeouts

INVALID_OUTPUT: Final = "invalid_output"


@record
class Succeeded:
    """The function returned this."""

    output: Payload


@record
class HandedBack:
    """The worker stops: another one starts the attempt again, and it is not spent."""


@record
class Abandoned:
    """The attempt belongs to this worker no more: nothing is reported."""

    reason: str


Outcome = Succeeded | Failure | HandedBack | Abandoned

_NOTHING: Final = Succeeded(NULL)
"""What a function without a result returns, which need not be encoded."""


class _Raised:
    """The function raised this."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Attempt:
    """One claimed task in execution."""

    __slots__ = (
        "_cancelling",
        "_context",
        "_executor",
        "_function",
        "_limit",
        "_runner",
        "_thread",
        "_timeouts",
        "_verdict",
        "claimed",
    )

    def __init__(
        self,
        claimed: ClaimedTask,
        function: TaskFunction | None,
        executor: Executor,
        limit: int,
        timeouts: Timeouts | None = None,
    ) -> None:
        """``limit``: bytes of an output; ``timeouts``: those of the worker."""
        self.claimed = claimed
        self._context: TaskContext | None = None
        self._function = function
        self._executor = executor
        self._limit = limit
        self._timeouts = timeouts or Timeouts()
        self._verdict: Outcome | None = None
        self._runner: asyncio.Task[Any] | None = None
        self._cancelling = False
        """The runner was cancelled for the verdict's sake."""
        self._thread: asyncio.Future[Any] | None = None

    @property
    def context(self) -> TaskContext:
        """What the function may know of it; made when something asks for it, as most functions do not."""
        if self._context is None:
            self._context = TaskContext(self.claimed)
        return self._context

    @property
    def executing(self) -> bool:
        """Whether the function's result is still awaited."""
        return self._runner is not None

    def thread_runs(self) -> bool:
        """Whether the function is still running in a thread."""
        return self._thread is not None and not self._thread.done()

    def give_up(self, verdict: Outcome, reason: str) -> None:
        """End the attempt with this outcome unless it has ended; the first verdict counts."""
        if self._verdict is not None:
            return
        self._verdict = verdict
        if self._context is not None:
            self._context.give_up(reason)
        if self._runner is not None:
            self._cancelling = self._runner.cancel()

    async def execute(self, runner: asyncio.Task[Any] | None = None) -> Outcome:
        """Run the function to its end; never raises for what the function does. ``runner``: the task that awaits it."""
        if self._verdict is not None:
            return self._verdict
        function, timeout_ms = self._function, self.claimed.timeout_ms
        if function is None:
            return _unknown_type(self.claimed.type)
        runner = self._runner = runner or asyncio.current_task()
        self._timeouts.begin(self, timeout_ms)
        guard = GUARDING.set(True) if function.is_async else None
        try:
            context = self.context if function.binding.context else None
            arguments = function.binding.arguments(context, self.claimed.input.value)
            if guard is not None:
                return self._ended(await function.function(**arguments))
            return self._ended(await self._in_thread(function.function, arguments))
        except asyncio.CancelledError:
            if self._verdict is None and runner is not None and runner.cancelling():
                raise  # the worker itself is being torn down
            return self._verdict or _cancelled_itself()
        except BaseException as error:  # noqa: BLE001  # SystemExit, KeyboardInterrupt: this attempt's failure alone
            return self._ended(_Raised(error))
        finally:
            if self._cancelling and runner is not None:
                runner.uncancel()
            self._runner = None
            self._timeouts.end(self, timeout_ms)
            if guard is not None:
                GUARDING.reset(guard)

    async def settled(self) -> None:
        """Wait until the function has really ended; only one in a thread may still be running."""
        if self._thread is not None and self.thread_runs():
            await asyncio.wait({self._thread})

    async def _in_thread(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Json | _Raised:
        call = functools.partial(contextvars.copy_context().run, _guarded, function, arguments)
        self._thread = asyncio.get_running_loop().run_in_executor(self._executor, call)
        self._thread.add_done_callback(_retrieve)
        return await asyncio.shield(self._thread)

    def time_out(self) -> None:
        """Its timeout has passed."""
        seconds = self.claimed.timeout_ms / 1000
        error = ErrorInfo(TIMEOUT, f"the attempt took longer than its timeout of {seconds:g} s")
        self.give_up(Failure(error), "timed out")

    def _ended(self, result: Json | _Raised) -> Outcome:
        """The outcome of a function that came to its end by itself."""
        if result is None and self._verdict is None:
            return _NOTHING
        if isinstance(self._verdict, Abandoned):
            return self._verdict
        if not isinstance(result, _Raised):
            return self._output(result)
        if isinstance(result.error, TaskCancelled) and self._verdict is not None:
            return self._verdict
        if isinstance(result.error, asyncio.CancelledError):
            return self._verdict or _cancelled_itself()
        failure = failure_of(result.error)
        ours = isinstance(result.error, BuiltinError) and result.error.__cause__ is None
        self.context.log.info(
            "task failed: %s: %s", failure.error.type, failure.error.message, exc_info=None if ours else result.error
        )
        return failure

    def _output(self, value: Json) -> Outcome:
        try:
            payload = Payload.parse(encode(value, "output"))
        except InvalidError as error:
            return Failure(ErrorInfo(INVALID_OUTPUT, error.message))
        except Exception as error:  # noqa: BLE001  # what the task's own objects raise while they are encoded
            return Failure(ErrorInfo(INVALID_OUTPUT, f"output: cannot be encoded: {failure_of(error).error.message}"))
        if (size := payload.size()) > self._limit:
            message = (
                f"the output has {size:,} bytes; expected at most {self._limit:,}: store it elsewhere, return where"
            )
            return Failure(ErrorInfo(OUTPUT_TOO_LARGE, message))
        return Succeeded(payload)


def _unknown_type(name: str) -> Failure:
    if name.startswith("partita."):
        message = f"task {name}: this version of the worker has no such built-in type"
        return Failure(ErrorInfo(UNKNOWN_TASK_TYPE, message))
    return Failure(
        ErrorInfo(UNKNOWN_TASK_TYPE, f'task {name}: the worker has no function for it; expected @task("{name}")')
    )


def _guarded(function: Callable[..., Json], arguments: dict[str, Any]) -> Json | _Raised:
    """Call a function in its thread. Its exception is a value here: a future cannot carry StopIteration, and lets
    SystemExit through to the event loop."""
    try:
        return function(**arguments)
    except BaseException as error:  # noqa: BLE001  # the thread is the pool's; the attempt says what it means
        return _Raised(error)


def _cancelled_itself() -> Failure:
    return Failure(ErrorInfo("cancelled_itself", "the function raised CancelledError without being cancelled"))


def _retrieve(future: asyncio.Future[Any]) -> None:
    """Look at the exception of a thread that nobody awaits any more, so that it is not warned about."""
    if not future.cancelled():
        future.exception()
