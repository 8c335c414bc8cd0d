"""Keeps what a function starts from ending the process.

asyncio lets SystemExit and KeyboardInterrupt of any of its tasks through to whoever runs the event loop. Invariant: one
that is raised in a task which a function of a user's started is that task's error, and no more. Trade-off: every such
task runs through one object more; tasks of anybody else are made as they always are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

from partita.worker.failures import BuiltinError, type_of

GUARDING: Final[ContextVar[bool]] = ContextVar("GUARDING", default=False)
"""Whether tasks that are started here are guarded; an attempt sets it around its function without ``guarding``, which
takes 2 µs."""


def install(loop: asyncio.AbstractEventLoop) -> None:
    """Make the loop guard tasks that are started inside ``guarding``; doing it again changes nothing."""
    made = loop.get_task_factory()
    if not isinstance(made, _Factory):
        loop.set_task_factory(_Factory(made))


@contextmanager
def guarding() -> Iterator[None]:
    """Tasks that are started inside, and those which these start, cannot end the loop."""
    token = GUARDING.set(True)
    try:
        yield
    finally:
        GUARDING.reset(token)


class _Factory:
    """Makes the tasks of a loop."""

    def __init__(self, before: Callable[..., Any] | None) -> None:
        self._make = before or _plain

    def __call__(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        """Called by the loop for each new task."""
        guard = GUARDING.get() and asyncio.iscoroutine(work)
        return self._make(loop, _Guarded(work) if guard else work, **options)


class _Guarded(Coroutine[Any, Any, Any]):
    """A coroutine that ends with an ordinary error instead of SystemExit or KeyboardInterrupt."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work

    def send(self, value: Any, /) -> Any:
        """Go on."""
        try:
            return self._work.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            _translated(error)

    def throw(self, *error: Any) -> Any:
        """Go on with an exception."""
        try:
            return self._work.throw(*error)
        except (SystemExit, KeyboardInterrupt) as raised:
            _translated(raised)

    def close(self) -> None:
        """End it."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()

    def __getattr__(self, name: str) -> Any:
        """Names and frames for whoever looks at the task."""
        return getattr(self._work, name)


def _plain(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(work, loop=loop, **options)


def _translated(error: BaseException) -> NoReturn:
    kind = type_of(type(error))
    raise BuiltinError(kind, f"a task that the function started raised {type(error).__name__}: {error}") from error
