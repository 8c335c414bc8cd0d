"""One attempt: whatever the function does, it ends in one outcome."""

# ruff: noqa: A002 - input and type are the words of the SDK

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from partita.domain.payload import Json
from partita.worker import Retryable, TaskContext, Tasks
from partita.worker.attempts import Abandoned, Attempt, HandedBack, Outcome, Succeeded
from partita.worker.failures import Failure
from tests.worker.support import claimed


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def attempt(executor: ThreadPoolExecutor) -> Callable[..., Attempt]:
    def make(
        function: Callable[..., Any], *, input: Json = None, timeout_ms: int = 60_000, limit: int = 100
    ) -> Attempt:
        app = Tasks()
        app.task("charge-card")(function)
        return Attempt(claimed(input=input, timeout_ms=timeout_ms), app.get("charge-card"), executor, limit)

    return make


def error_type(outcome: Outcome) -> str:
    assert isinstance(outcome, Failure)
    return outcome.error.type


async def test_async_and_sync_functions_return_any_json(attempt: Callable[..., Attempt]) -> None:
    async def one(amount: int) -> Json:
        return {"charged": amount}

    def two(amount: int) -> Json:
        assert threading.current_thread() is not threading.main_thread()
        return [amount, None]

    for function, value in ((one, {"charged": 3}), (two, [3, None])):
        outcome = await attempt(function, input={"amount": 3}).execute()
        assert isinstance(outcome, Succeeded)
        assert outcome.output.value == value


async def test_exceptions_are_failures(attempt: Callable[..., Attempt]) -> None:
    async def one() -> None:
        raise Retryable("busy", after=2)

    def two() -> None:
        raise ValueError("bad")

    first = await attempt(one).execute()
    assert isinstance(first, Failure)
    assert (first.error.type, first.retryable, first.retry_after_ms) == ("retryable", True, 2000)
    assert error_type(await attempt(two).execute()) == "value_error"
    assert error_type(await attempt(two, input={"x": 1}).execute()) == "invalid_input"


class Bare(BaseException):
    """Not an Exception."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SystemExit(3), "system_exit"),
        (KeyboardInterrupt(), "keyboard_interrupt"),
        (GeneratorExit(), "generator_exit"),
        (Bare("b"), "bare"),
        (StopIteration(1), "stop_iteration"),
        (StopAsyncIteration(), "stop_async_iteration"),
        (asyncio.CancelledError(), "cancelled_itself"),
    ],
)
async def test_whatever_a_function_raises_is_a_failure_of_its_attempt(
    attempt: Callable[..., Attempt], error: BaseException, kind: str
) -> None:
    async def one() -> None:
        raise error

    def two() -> None:
        raise error

    in_loop = attempt(one)
    assert error_type(await in_loop.execute()) == (kind if not isinstance(error, StopIteration) else "runtime_error")
    in_thread = attempt(two)
    assert error_type(await asyncio.wait_for(in_thread.execute(), 20)) == kind
    assert not in_thread.thread_runs()


async def test_a_function_that_answers_its_cancellation_otherwise_leaves_no_trace_of_it(
    attempt: Callable[..., Attempt],
) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("instead") from None

    assert error_type(await attempt(stubborn, timeout_ms=20).execute()) == "value_error"
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0, "the slot goes on with the next attempt"


async def test_outputs_that_cannot_be_stored_are_failures(attempt: Callable[..., Attempt]) -> None:
    async def large() -> str:
        return "x" * 99

    async def odd() -> object:
        return object()

    async def nul() -> str:
        return "a\0b"

    def no_number() -> Json:
        return {"mean": float("nan")}

    assert error_type(await attempt(large).execute()) == "output_too_large"
    assert error_type(await attempt(odd).execute()) == "invalid_output"
    assert error_type(await attempt(nul).execute()) == "invalid_output"
    assert error_type(await attempt(no_number).execute()) == "invalid_output"


async def test_unknown_types_are_failures(executor: ThreadPoolExecutor) -> None:
    for name, message in (("pack", '@task("pack")'), ("partita.later", "no such built-in type")):
        outcome = await Attempt(claimed(type=name), None, executor, 100).execute()
        assert error_type(outcome) == "unknown_task_type"
        assert isinstance(outcome, Failure)
        assert message in outcome.error.message


async def test_an_async_function_is_cancelled_at_its_timeout(attempt: Callable[..., Attempt]) -> None:
    cleaned = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    outcome = await attempt(slow, timeout_ms=20).execute()
    assert error_type(outcome) == "timeout"
    assert cleaned.is_set()
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0


async def test_a_thread_is_told_and_keeps_its_slot(attempt: Callable[..., Attempt]) -> None:
    release, told = threading.Event(), threading.Event()

    def slow(ctx: TaskContext) -> None:
        release.wait(20)
        if ctx.cancelled:
            told.set()
        ctx.raise_if_cancelled()

    stuck = attempt(slow, timeout_ms=20)
    assert error_type(await stuck.execute()) == "timeout"
    assert stuck.thread_runs()
    release.set()
    await stuck.settled()
    assert not stuck.thread_runs()
    assert told.is_set()


async def test_the_first_verdict_counts(attempt: Callable[..., Attempt]) -> None:
    began = asyncio.Event()
    reasons: list[str] = []

    async def slow(ctx: TaskContext) -> None:
        began.set()
        reasons.append(await ctx.wait_cancelled())

    async def verdict(on: Attempt) -> None:
        await began.wait()
        on.give_up(HandedBack(), "the worker stops")
        on.give_up(Abandoned("lost"), "lost")

    running = attempt(slow)
    async with asyncio.TaskGroup() as group:
        execution = group.create_task(running.execute())
        group.create_task(verdict(running))
    assert execution.result() == HandedBack()
    assert running.context.cancel_reason == "the worker stops"


async def test_what_an_abandoned_function_returns_is_not_reported(attempt: Callable[..., Attempt]) -> None:
    began = asyncio.Event()

    async def stubborn() -> int:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 3
        return 4

    running = attempt(stubborn)
    async with asyncio.TaskGroup() as group:
        execution = group.create_task(running.execute())
        await began.wait()
        running.give_up(Abandoned("lost"), "lost")
    assert execution.result() == Abandoned("lost")


async def test_cancelling_the_worker_is_not_an_outcome(attempt: Callable[..., Attempt]) -> None:
    began = asyncio.Event()

    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        execution = group.create_task(attempt(slow).execute())
        await began.wait()
        execution.cancel()
    assert execution.cancelled()
