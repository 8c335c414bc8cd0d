"""A peer's process: it does one role and answers requests, one line of JSON each, until its input ends.

Roles: ``set-up`` makes the peer's schema and ends. ``work`` executes steps. ``submit`` only takes runs. ``lone`` does
both in one process, for latency. A process tells that it is ready with a line that says what it is
(``Adapter.about``).

Requests: ``{"do": "submit", "runs": n}`` is answered when all are durably taken, ``{"do": "count"}`` with how often
each step was executed here, ``{"do": "lone", "runs": n}`` with the milliseconds of runs that had the process for
themselves.

Invariant: steps are counted where they are executed, so that work which the peer believes done but never did shows;
what a library prints goes to stderr and cannot be taken for an answer. This file needs the standard library alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

STEPS: Final = 3
PATIENCE: Final = 30.0
"""Seconds after which a lone run that does not end is a fault."""
QUEUE: Final = "a step's end and the next step's start are not atomic"
ENGINE: Final = "workflow of three steps"


class Adapter(Protocol):
    """One peer. ``steps`` counts executions of each step in this process."""

    steps: list[int]

    def about(self) -> dict[str, Any]:
        """Give version, setting, steps (what a step is), and SQL: open (any run unfinished), finished (how many)."""

    async def set_up(self) -> None:
        """Make the schema in an empty database."""

    def role(self, role: str) -> AbstractAsyncContextManager[None]:
        """Be what the role says while the block runs."""

    async def submit(self, runs: int) -> None:
        """Take runs durably, in the way that is recommended for many."""

    async def lone(self) -> None:
        """Submit one run and return as soon as this process knows that it has ended."""


class Ends:
    """Tells the one who waits that the last step of the lone run was executed in this process."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()

    def begin(self) -> None:
        """Forget the run before."""
        self._ended.clear()

    def tell(self) -> None:
        """Say that the last step was executed."""
        self._ended.set()

    async def wait(self) -> None:
        """Wait for it; TimeoutError when it does not come."""
        async with asyncio.timeout(PATIENCE):
            await self._ended.wait()


def serve(adapter: Adapter) -> None:
    """Do the role that the command line names."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    run = asyncio.run
    try:
        import uvloop  # noqa: PLC0415  # not on every platform

        run = uvloop.run
    except ImportError:
        print("no uvloop here: figures of peers in Python are lower than they could be", file=sys.stderr)
    run(_serve(adapter, sys.argv[1], answers))


async def _serve(adapter: Adapter, role: str, answers: Any) -> None:
    if role == "set-up":
        await adapter.set_up()
        _answer(answers, {"ready": True, **adapter.about()})
        return
    requests = await _requests()
    async with adapter.role(role):
        _answer(answers, {"ready": True, **adapter.about()})
        while line := await requests.readline():
            _answer(answers, await _answered(adapter, json.loads(line)))


async def _answered(adapter: Adapter, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "submit":
        await adapter.submit(request["runs"])
        return {"submitted": request["runs"]}
    if request["do"] == "lone":
        return {"milliseconds": [await _lone(adapter) for _ in range(request["runs"])]}
    return {"steps": adapter.steps}


async def _lone(adapter: Adapter) -> float:
    begun = time.perf_counter()
    await adapter.lone()
    return (time.perf_counter() - begun) * 1e3


async def _requests() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _answer(answers: Any, content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()
