"""What a function starts cannot end the event loop, on either loop."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import uvloop

from partita.domain.payload import Json
from partita.worker import Tasks
from partita.worker.attempts import Attempt, Succeeded
from partita.worker.failures import Failure
from partita.worker.subtasks import guarding, install
from tests.worker.support import claimed

Run = Callable[[Coroutine[Any, Any, Any]], Any]
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


async def leave(error: type[BaseException] = SystemExit) -> None:
    await asyncio.sleep(0)
    raise error(3)


async def executed(function: Callable[[], Awaitable[Json]]) -> object:
    """The outcome of an attempt; the loop still works afterwards."""
    install(asyncio.get_running_loop())
    install(asyncio.get_running_loop())
    app = Tasks()
    app.task("leave")(function)
    with ThreadPoolExecutor(1) as executor:
        outcome = await Attempt(claimed(type="leave"), app.get("leave"), executor, 1_000).execute()
        await asyncio.create_task(asyncio.sleep(0.001))
        return outcome


@LOOPS
@pytest.mark.parametrize(("error", "kind"), [(SystemExit, "system_exit"), (KeyboardInterrupt, "keyboard_interrupt")])
def test_an_exit_in_a_subtask_fails_its_attempt_alone(run: Run, error: type[BaseException], kind: str) -> None:
    async def function() -> None:
        await asyncio.create_task(leave(error))

    outcome = run(executed(function))
    assert isinstance(outcome, Failure)
    assert outcome.error.type == kind
    assert "a task that the function started raised" in outcome.error.message


@LOOPS
def test_an_exit_that_nobody_waits_for_is_that_tasks_own(run: Run) -> None:
    async def function() -> str:
        async def start_another() -> None:
            asyncio.get_running_loop().create_task(leave()).add_done_callback(done.set_result)

        done: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
        await asyncio.create_task(start_another(), name="another", context=contextvars.copy_context())
        assert "raised SystemExit" in str((await done).exception())
        return "went on"

    outcome = run(executed(function))
    assert isinstance(outcome, Succeeded)
    assert outcome.output.value == "went on"


@LOOPS
def test_task_groups_gather_and_cancellation_work_as_ever(run: Run, recwarn: pytest.WarningsRecorder) -> None:
    async def function() -> Json:
        async def number(value: int) -> int:
            await asyncio.sleep(0)
            return value

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(number(value), name=f"n{value}") for value in range(3)]
        never = asyncio.create_task(leave())
        never.cancel()  # before its first step
        cancelled = await asyncio.gather(never, return_exceptions=True)
        assert "leave" in repr(never)
        assert [type(one) for one in cancelled] == [asyncio.CancelledError]
        return [*(task.result() for task in tasks), *await asyncio.gather(number(7), number(8))]

    outcome = run(executed(function))
    assert isinstance(outcome, Succeeded)
    assert outcome.output.value == [0, 1, 2, 7, 8]
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


def test_tasks_outside_are_left_alone() -> None:
    async def main() -> None:
        install(asyncio.get_running_loop())
        with guarding():
            inside = asyncio.create_task(leave())
        with pytest.raises(Exception, match="raised SystemExit"):
            await inside
        outside = asyncio.create_task(leave())
        await outside

    with pytest.raises(SystemExit):
        asyncio.run(main())
