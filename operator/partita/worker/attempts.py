"""Executes one attempt and says how it ended.

Invariant: whatever the function does, the attempt ends in exactly one outcome. An async function runs on the event loop
and is cancelled when the attempt is given up; a function in a thread cannot be stopped, so it is told (``cancelled``)
and keeps its slot until it returns, while its outcome is decided without it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from partita.domain.errors import InvalidError
from partita.domain.payload import Json, Payload, encode
from partita.domain.state.error_types import OUTPUT_TOO_LARGE, TIMEOUT
from partita.domain.state.rows import ErrorInfo
from partita.engine.requests import ClaimedTask
from partita.worker.context import TaskCancelled, TaskContext
from partita.worker.failures import Failure, failure_of
from partita.worker.registry import TaskFunction

UNKNOWN_TASK_TYPE = "unknown_task_type"
INVALID_OUTPUT = "invalid_output"


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The function returned this."""

    output: Payload


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The worker stops: another one starts the attempt again, and it is not spent."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The attempt belongs to this worker no more: nothing is reported."""

    reason: str


Outcome = Succeeded | Failure | HandedBack | Abandoned


class Attempt:
    """One claimed task in execution."""

    def __init__(self, claimed: ClaimedTask, function: TaskFunction | None, executor: Executor, limit: int) -> None:
        self.claimed = claimed
        self.context = TaskContext(claimed)
        self._function = function
        self._executor = executor
        self._limit = limit
        self._verdict: Outcome | None = None
        self._runner: asyncio.Task[Any] | None = None
        self._thread: asyncio.Future[Any] | None = None

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
        self.context.give_up(reason)
        if self._runner is not None:
            self._runner.cancel()

    async def execute(self) -> Outcome:
        """Run the function to its end; never raises for what the function does."""
        if self._verdict is not None:
            return self._verdict
        if self._function is None:
            return _unknown_type(self.claimed.type)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.claimed.timeout_ms / 1000, self._time_out)
        self._runner = asyncio.current_task()
        try:
            value = await self._call(self._function)
        except asyncio.CancelledError as error:
            return self._cancelled(error)
        except TaskCancelled as error:
            return self._verdict or failure_of(error)
        except Exception as error:
            self.context.log.info("task failed", exc_info=error)
            return self._verdict if isinstance(self._verdict, Abandoned) else failure_of(error)
        else:
            return self._verdict if isinstance(self._verdict, Abandoned) else self._output(value)
        finally:
            self._runner = None
            timer.cancel()

    async def settled(self) -> None:
        """Wait until the function has really ended; only one in a thread may still be running."""
        if self._thread is not None and self.thread_runs():
            await asyncio.wait({self._thread})

    async def _call(self, function: TaskFunction) -> Json:
        arguments = function.binding.arguments(self.context, self.claimed.input.value)
        if function.is_async:
            return await function.function(**arguments)
        call = functools.partial(contextvars.copy_context().run, functools.partial(function.function, **arguments))
        self._thread = asyncio.get_running_loop().run_in_executor(self._executor, call)
        self._thread.add_done_callback(_retrieve)
        return await asyncio.shield(self._thread)

    def _time_out(self) -> None:
        seconds = self.claimed.timeout_ms / 1000
        error = ErrorInfo(TIMEOUT, f"the attempt took longer than its timeout of {seconds:g} s")
        self.give_up(Failure(error), "timed out")

    def _cancelled(self, error: asyncio.CancelledError) -> Outcome:
        runner = self._runner
        if self._verdict is None:
            if runner is not None and runner.cancelling():
                raise error  # the worker itself is being torn down
            return Failure(ErrorInfo("cancelled_itself", "the function raised CancelledError without being cancelled"))
        if runner is not None:
            runner.uncancel()
        return self._verdict

    def _output(self, value: Json) -> Outcome:
        try:
            payload = Payload.parse(encode(value, "output"))
        except InvalidError as error:
            return Failure(ErrorInfo(INVALID_OUTPUT, error.message))
        if (size := payload.size()) > self._limit:
            message = (
                f"the output has {size:,} bytes; expected at most {self._limit:,}: store it elsewhere, return where"
            )
            return Failure(ErrorInfo(OUTPUT_TOO_LARGE, message))
        return Succeeded(payload)


def _unknown_type(name: str) -> Failure:
    if name.startswith("partita."):
        return Failure(ErrorInfo(UNKNOWN_TASK_TYPE, f"task {name}: this version has no built-in task types"))
    return Failure(
        ErrorInfo(UNKNOWN_TASK_TYPE, f'task {name}: the worker has no function for it; expected @task("{name}")')
    )


def _retrieve(future: asyncio.Future[Any]) -> None:
    """Look at the exception of a thread that nobody awaits any more, so that it is not warned about."""
    if not future.cancelled():
        future.exception()
