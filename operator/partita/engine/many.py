"""Many start requests of one caller, answered one by one.

Purpose: large transactions without making the requests depend on each other. Invariant: the answer of each request is
that of ``Starts.start``; requests that claim the same name (a run id, or a key) are never in flight together, so that
the second finds what the first one made. Trade-off: such doubles wait for a further wave of transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from partita.domain.errors import InvalidError, PartitaError, Problem
from partita.engine.bulk import Lot
from partita.engine.coordinator import Coordinator
from partita.engine.requests import StartReply, StartRequest, Version
from partita.engine.starts import TRIES, Starts, gone, names_of
from partita.engine.submissions import Start
from partita.store.database import Connection

MOST: Final = 10_000
"""Requests of one call."""

Answer = StartReply | PartitaError
_Resolved = dict[tuple[str, str, int | None], Version | PartitaError]


class ManyStarts:
    """Calls for many starts of one process."""

    def __init__(self, starts: Starts, coordinator: Coordinator, size: int) -> None:
        self._starts = starts
        self._coordinator = coordinator
        self._size = size
        """Starts of one transaction."""

    async def start(self, requests: Sequence[StartRequest]) -> list[Answer]:
        """The answers in order; raises InvalidError for too many requests."""
        _bound(requests)
        call = _Call(requests)
        while call.todo:
            wave = call.next_wave()
            versions = await self._resolve(call.requests[place] for place in wave)
            begun: list[tuple[int, Start]] = []
            await self._coordinator.bulk.settle(self._lots(call, wave, versions, begun))
            for place, start in begun:
                self._take(call, place, start)
        return call.complete()

    async def start_in(self, connection: Connection, requests: Sequence[StartRequest]) -> list[UUID]:
        """Put starts into the inbox within the caller's transaction; see ``Starts.start_in``."""
        _bound(requests)
        return await self._starts.start_in(connection, requests)

    async def _resolve(self, requests: Iterable[StartRequest]) -> _Resolved:
        """The versions that are asked for, each looked up once."""
        found: _Resolved = {}
        for request in requests:
            place = (request.namespace, request.definition, request.version)
            if place not in found:
                try:
                    found[place] = await self._starts.resolve(request)
                except PartitaError as error:
                    found[place] = error
        return found

    def _lots(
        self, call: _Call, wave: Sequence[int], versions: _Resolved, begun: list[tuple[int, Start]]
    ) -> Iterator[Lot]:
        """The wave in lots, each prepared when it is asked for; what cannot be prepared is answered here."""
        for first in range(0, len(wave), self._size):
            lot: list[Start] = []
            for place in wave[first : first + self._size]:
                request = call.requests[place]
                try:
                    start = self._prepare(request, versions[request.namespace, request.definition, request.version])
                except PartitaError as error:
                    call.answers[place] = error
                    continue
                begun.append((place, start))
                lot.append(start)
            if lot:
                lot.sort(key=_by_id)  # two transactions of the same runs then wait for each other in one order
                yield lot

    def _prepare(self, request: StartRequest, version: Version | PartitaError) -> Start:
        if isinstance(version, PartitaError):
            raise version
        return self._coordinator.prepared_start(request, version, self._starts.prepare(request, version))

    def _take(self, call: _Call, place: int, start: Start) -> None:
        """The outcome of a start: its answer, or another try with the version that is deployed now."""
        error = start.future.exception()
        if error is not None:
            call.answers[place] = error if isinstance(error, PartitaError) else PartitaError(str(error))
            return
        answer = start.future.result()
        if answer is not None:
            call.answers[place] = answer
            return
        request = start.request
        self._starts.forget(request)
        tries = call.tries[place] = call.tries.get(place, 1) + 1
        if tries > TRIES:
            call.answers[place] = gone(request)
        elif tries == TRIES:  # at last the version counts that was deployed when this request asked
            call.requests[place] = replace(request, version=start.version.version)
            call.todo.append(place)
        else:
            call.todo.append(place)


class _Call:
    """The requests of one call, and how far they are."""

    def __init__(self, requests: Sequence[StartRequest]) -> None:
        self.requests = list(requests)
        self.answers: list[Answer | None] = [None] * len(requests)
        self.tries: dict[int, int] = {}
        """Of requests whose version was replaced under them."""
        self.todo: list[int] = []
        self._names: list[frozenset[object]] = []
        self._known: set[object] = set()
        """Names whose runs exist: any number of requests may ask for them at once."""
        for place, request in enumerate(requests):
            try:
                self._names.append(names_of(request))
                self.todo.append(place)
            except PartitaError as error:
                self._names.append(frozenset())
                self.answers[place] = error

    def next_wave(self) -> list[int]:
        """Requests no two of which could start the same run; the others stay to be done."""
        for place, answer in enumerate(self.answers):
            if isinstance(answer, StartReply):
                self._known |= self._names[place]
        apart: set[object] = set()
        wave, later = [], []
        for place in self.todo:
            names = self._names[place] - self._known
            if apart.isdisjoint(names):
                apart |= names
                wave.append(place)
            else:
                later.append(place)
        self.todo = later
        return wave

    def complete(self) -> list[Answer]:
        """The answers, of which none lacks any more."""
        return [answer for answer in self.answers if answer is not None]


def _by_id(start: Start) -> int:
    return start.run_id.int


def _bound(requests: Sequence[StartRequest]) -> None:
    if len(requests) > MOST:
        problem = Problem("requests", f"are {len(requests):,}; expected at most {MOST:,} in one call")
        raise InvalidError("start", (problem,))
