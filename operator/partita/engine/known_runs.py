"""Which version of which definition runs are of, of those that this process has had to do with lately.

Purpose: what a report will read is foreseen before its run has been read. Invariant: a run keeps its version for ever,
so what stands here is true or missing. Trade-off: bounded, the run that was noted longest ago goes first.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from partita.domain.model import Definition
from partita.engine.definitions import Definitions, Key

_MOST: Final = 4_096
"""Runs that are remembered, at about 300 bytes each."""


class KnownRuns:
    """What the runs of one process execute; of ``Memory`` apart, since it is small and true for ever."""

    __slots__ = ("_definitions", "_flows")

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._flows: dict[UUID, tuple[Key, str]] = {}

    def note(self, run_id: UUID, version: Key, subflow: str) -> None:
        """A run of this version was started or read; ``subflow`` is the part of it that the run executes, if any."""
        flows = self._flows
        if run_id not in flows:
            if len(flows) >= _MOST:
                del flows[next(iter(flows))]
            flows[run_id] = (version, subflow)

    def definition(self, run_id: UUID) -> Definition | None:
        """What a run executes, if both are known."""
        flow = self._flows.get(run_id)
        version = None if flow is None else self._definitions.known(flow[0])
        return None if flow is None or version is None else version.definition.flow(flow[1])
