"""What a running task knows about itself.

Invariant: a context belongs to one attempt, and everything in it is fixed but the cancellation. Reading it is safe from
the task's thread and from the event loop. Only what the engine stores or acts on is here: nothing can be said into the
void.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping
from typing import Any
from uuid import UUID

from partita.domain.payload import Json
from partita.engine.requests import ClaimedTask


class TaskCancelled(Exception):
    """Raised by ``TaskContext.raise_if_cancelled``: the attempt is given up, and nothing it returns is recorded."""


class _AttemptLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds which attempt speaks to every record of the worker's own log."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class TaskContext:
    """One attempt of one task."""

    __slots__ = ("_async_cancelled", "_cancelled", "_claimed", "_deadline", "_reason")

    def __init__(self, claimed: ClaimedTask) -> None:
        self._claimed = claimed
        self._cancelled = False
        self._reason = ""
        self._async_cancelled: asyncio.Event | None = None
        self._deadline = time.monotonic() + claimed.timeout_ms / 1000

    @property
    def run_id(self) -> UUID:
        """The run that the task belongs to."""
        return self._claimed.run_id

    @property
    def node(self) -> str:
        """Name of the node in its definition."""
        return self._claimed.node

    @property
    def index(self) -> int:
        """Item of a loop; 0 outside one."""
        return self._claimed.index

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1."""
        return self._claimed.attempt

    @property
    def type(self) -> str:
        """The task's type, as manifests name it."""
        return self._claimed.type

    @property
    def namespace(self) -> str:
        """Namespace of the run."""
        return self._claimed.namespace

    @property
    def input(self) -> Json:
        """The whole input."""
        return self._claimed.input.value

    @property
    def idempotency_key(self) -> str:
        """The same text for every attempt of this task and for no other task: give it to services that dedupe."""
        task = self._claimed
        return f"{task.run_id}/{task.generation}/{task.node}/{task.index}"

    @property
    def remaining(self) -> float:
        """Seconds left before the attempt times out."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the attempt is given up (cancelled, timed out, lost, or the worker stops)."""
        return self._cancelled

    @property
    def cancel_reason(self) -> str:
        """Why it is given up; empty while it is not."""
        return self._reason

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """The worker's log, with the attempt's identity on every record; it is not kept in the database."""
        identity = {"run_id": str(self.run_id), "node": self.node, "attempt": self.attempt}
        return _AttemptLogger(logging.getLogger(f"partita.task.{self.type}"), identity)

    def raise_if_cancelled(self) -> None:
        """Raise TaskCancelled once the attempt is given up; long sync functions call it now and then."""
        if self._cancelled:
            raise TaskCancelled(self._reason)

    async def wait_cancelled(self) -> str:
        """Wait until the attempt is given up, and return why (for async functions)."""
        if self._async_cancelled is None:
            self._async_cancelled = asyncio.Event()
            if self._cancelled:
                self._async_cancelled.set()
        await self._async_cancelled.wait()
        return self._reason

    def give_up(self, reason: str) -> None:
        """Mark the attempt as given up; called by the runtime, on its event loop."""
        if not self._cancelled:
            self._reason = reason
            self._cancelled = True
            if self._async_cancelled is not None:
                self._async_cancelled.set()
