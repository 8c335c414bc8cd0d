"""A peer's process, seen from the benchmark: started, asked, and ended by the end of its input.

Invariant: a process does not outlive the block that started it, and one that ends, hangs or answers nonsense raises
PeerError, whose text ends with what the process said last. Requests and answers are described in ``process``.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any, Final

import orjson

from bench.peers.install import ROOT

_START: Final = 30.0
"""Seconds that a process may take to be ready."""
_GRACE: Final = 10.0
"""Seconds that it may take to end."""
_SAID: Final = 400
"""Characters of its last words that are shown."""


class PeerError(Exception):
    """A peer did not do what was asked."""


@dataclass(slots=True)
class Child:
    """One process of a peer."""

    process: asyncio.subprocess.Process
    said: IO[bytes]
    about: dict[str, Any]
    """What it said when it was ready."""

    async def ask(self, seconds: float, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        if self.process.stdin is None:
            raise PeerError("its process takes no requests")
        self.process.stdin.write(orjson.dumps(request) + b"\n")
        return await self.answer(seconds, f"no answer to {request['do']}")

    async def answer(self, seconds: float, problem: str) -> dict[str, Any]:
        """The next line."""
        try:
            async with asyncio.timeout(seconds):
                line = await self.process.stdout.readline() if self.process.stdout else b""
            found = orjson.loads(line)
        except TimeoutError as error:
            raise PeerError(f"{problem} after {seconds:.0f} s; {self._last()}") from error
        except orjson.JSONDecodeError as error:
            raise PeerError(f"{problem}; {self._last()}") from error
        return dict(found)

    async def end(self) -> None:
        """Let it end in good order, or kill it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(self.process.wait(), _GRACE)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()

    def _last(self) -> str:
        self.said.seek(0)
        words = " ".join(self.said.read().decode(errors="replace").split())
        return f"its last words: {words[-_SAID:]}" if words else "it said nothing"


@asynccontextmanager
async def child(command: Sequence[str], role: str, variables: Mapping[str, str]) -> AsyncIterator[Child]:
    """A process in a role, ready; PeerError when it is not ready in time."""
    with tempfile.TemporaryFile() as said:
        process = await asyncio.create_subprocess_exec(
            *command,
            role,
            cwd=ROOT,
            env=dict(variables),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=said,
        )
        found = Child(process, said, {})
        try:
            found.about = await found.answer(_START, f"not ready as {role}")
            yield found
        finally:
            await found.end()
