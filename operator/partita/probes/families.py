"""The metrics that every long-running process has: what it uses, whether its event loop turns, how its duties are.

Invariant: a name, once released, keeps its meaning and its labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from partita.probes.metrics import Family

BUILD: Final = Family(
    name="partita_build_info",
    kind="gauge",
    help="Always 1; the label says the version.",
    labels=("version",),
    everyone=True,
)
LOOP_AGE: Final = Family(
    name="partita_event_loop_age_seconds",
    kind="gauge",
    help="How long ago the event loop last turned; it should every second.",
    everyone=True,
)
CPU: Final = Family(
    name="process_cpu_seconds_total", kind="counter", help="Processor time of this process.", everyone=True
)
MEMORY: Final = Family(
    name="process_resident_memory_bytes", kind="gauge", help="Resident memory of this process.", everyone=True
)
STARTED: Final = Family(
    name="process_start_time_seconds", kind="gauge", help="Unix time at which this process began.", everyone=True
)
OF_EVERY_PROCESS: Final = (LOOP_AGE, CPU, MEMORY, STARTED)


@dataclass(frozen=True, slots=True)
class DutyFamilies:
    """How each background duty of a process is, by its name."""

    up: Family
    restarts: Family
    rounds: Family
    round_age: Family

    @property
    def all(self) -> tuple[Family, ...]:
        """In the order in which they are written."""
        return self.up, self.restarts, self.rounds, self.round_age


def duty_families(process: str, owner: str, since: str) -> DutyFamilies:
    """The families of one kind of process, such as ``operator``; ``since`` says when its counters begin."""

    def family(name: str, kind: str, words: str) -> Family:
        return Family(name=f"partita_{process}_duty_{name}", kind=kind, help=words, labels=("duty",))

    return DutyFamilies(
        up=family("up", "gauge", f"Whether a duty of {owner} runs (1) or pauses after a failure (0)."),
        restarts=family("restarts_total", "counter", f"Restarts of a duty after a failure, since {since}."),
        rounds=family("rounds_total", "counter", f"Rounds that a duty has completed, since {since}."),
        round_age=family(
            "round_age_seconds", "gauge", "How long a duty has been in its present round; 0 between two rounds."
        ),
    )
