"""One run for each line of a file: reading the lines, starting their runs, and counting what became of them.

Invariant: a line is answered by itself, so that a bad one stops no other; with a key prefix the same file may be sent
any number of times, as each line's key names its run. Trade-off: results are kept until the end, some hundred bytes a
line; inputs are not, whatever the size of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import orjson

from partita.cli.who import person
from partita.domain.errors import InvalidError, PartitaError, Problem, UnavailableError
from partita.domain.payload import Json
from partita.engine.engine import Engine
from partita.engine.requests import StartReply, StartRequest
from partita.minting import new_id

_CALL: Final = 1_000
"""Lines of one call of the engine; what is lost with a process that dies is at most sent twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineResult:
    """What became of one line."""

    line: int
    """Its number in the file, from 1."""
    id: str
    """The run's id; empty when there is none."""
    result: str
    """``created``, ``unchanged`` (it had been started before) or ``refused``."""
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What all runs of a file have in common."""

    namespace: str
    definition: str
    key_prefix: str
    """Before a line's number, its run's idempotency key; empty for none."""
    tags: tuple[str, ...] = ()

    def request(self, line: int, value: Json, by: str) -> StartRequest:
        """The start of the run of a line."""
        return StartRequest(
            namespace=self.namespace,
            definition=self.definition,
            input=value,
            idempotency_key=f"{self.key_prefix}{line}" if self.key_prefix else None,
            tags=self.tags,
            started_by=by,
            request_id=new_id(),
        )


@dataclass(slots=True)
class Outcome:
    """The results of a file, as far as it was sent."""

    results: list[LineResult] = field(default_factory=list)
    error: PartitaError | None = None
    """The first refusal."""
    stopped: bool = False
    """The database could not be reached, so that nothing more was sent."""

    def count(self, result: str) -> int:
        """Lines with this result."""
        return sum(each.result == result for each in self.results)

    def add(self, line: int, answer: StartReply | PartitaError) -> None:
        """Note the answer of a line."""
        if isinstance(answer, StartReply):
            result = "created" if answer.created else "unchanged"
            self.results.append(LineResult(line=line, id=str(answer.run_id), result=result, error=""))
            return
        self.error = self.error or answer
        self.stopped = self.stopped or isinstance(answer, UnavailableError)
        self.results.append(LineResult(line=line, id="", result="refused", error=str(answer)))


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The lines of a file; ``-`` is standard input. Raises InvalidError."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        words = f"{path}: cannot be read: {error.strerror}; expected a file of one JSON input a line, or -"
        raise InvalidError("--inputs", (Problem("", words),)) from error
    with file:
        yield file


async def submit_lines(
    engine: Engine, template: Template, lines: Iterable[bytes], progress: Callable[[Outcome], None]
) -> Outcome:
    """Start the run of each line; empty lines have none. ``progress`` is told after each call."""
    outcome, by = Outcome(), person()
    for numbered in _lots(lines):
        await _send(engine, template, numbered, by, outcome)
        progress(outcome)
        if outcome.stopped:
            break
    return outcome


async def _send(
    engine: Engine, template: Template, numbered: Sequence[tuple[int, bytes]], by: str, outcome: Outcome
) -> None:
    answers: dict[int, StartReply | PartitaError] = {}
    requests: dict[int, StartRequest] = {}
    for line, text in numbered:
        try:
            requests[line] = template.request(line, orjson.loads(text), by)
        except ValueError as error:
            answers[line] = InvalidError(
                "input", (Problem("", f"is not JSON: {error}; expected one JSON value a line"),)
            )
    answers |= dict(zip(requests, await engine.start_many(list(requests.values())), strict=True))
    for line in sorted(answers):
        outcome.add(line, answers[line])


def _lots(lines: Iterable[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """Lines with their numbers, so many at a time."""
    lot: list[tuple[int, bytes]] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        lot.append((number, text))
        if len(lot) == _CALL:
            yield lot
            lot = []
    if lot:
        yield lot
