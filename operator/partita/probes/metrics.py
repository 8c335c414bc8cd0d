"""Numbers of this process in the text format that Prometheus reads.

Purpose: counters and gauges of the families that a process declares, kept by the parts that know them and written when
somebody asks. Invariant: what is asked for is in memory already, so that a scrape costs no query and answers while the
database is away. Trade-off: a writer of our own, forty lines of a stable format, instead of a dependency.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Labels = tuple[str, ...]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Samples of one name."""

    name: str
    kind: str
    """``counter`` or ``gauge``."""
    help: str
    labels: tuple[str, ...] = ()
    everyone: bool = False
    """Said by every process, a standby too; of the operator's, everything else is the leader's."""


class Metrics:
    """Values by family and labels. One event loop writes; any thread may read."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._values: dict[Family, dict[Labels, float]] = {family: {} for family in families}
        self._asked: dict[Family, Callable[[], float]] = {}

    def add(self, family: Family, *labels: str, by: float = 1) -> None:
        """Count something."""
        values = self._values[family]
        values[labels] = values.get(labels, 0) + by

    def set(self, family: Family, value: float, *labels: str) -> None:
        """Say how much there is now."""
        self._values[family][labels] = value

    def replace(self, family: Family, values: Mapping[Labels, float]) -> None:
        """Say how much there is now of all labels; those that are not named are forgotten."""
        self._values[family] = dict(values)

    def ask(self, family: Family, value: Callable[[], float]) -> None:
        """Take a value whenever it is read; the callable must be quick and safe in any thread."""
        self._asked[family] = value

    def value(self, family: Family, *labels: str) -> float | None:
        """One sample; None where there is none."""
        if family in self._asked:
            return self._asked[family]()
        return self._values[family].get(labels)

    def clear(self) -> None:
        """Forget what only a leader says: its term has ended."""
        for family in self._values:
            if not family.everyone:
                self._values[family] = {}
                self._asked.pop(family, None)

    def text(self) -> str:
        """Everything, as a scrape wants it; families without a sample are left out."""
        lines: list[str] = []
        for family in self._values:
            samples = self._samples(family)
            if samples:
                lines += [f"# HELP {family.name} {_escaped(family.help)}", f"# TYPE {family.name} {family.kind}"]
                lines += [f"{family.name}{_labels(family, labels)} {_number(value)}" for labels, value in samples]
        return "\n".join([*lines, ""])

    def _samples(self, family: Family) -> list[tuple[Labels, float]]:
        if family in self._asked:
            return [((), self._asked[family]())]
        return sorted(self._values[family].items())


def _labels(family: Family, labels: Labels) -> str:
    pairs = [f'{name}="{_escaped(value, quoted=True)}"' for name, value in zip(family.labels, labels, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str, *, quoted: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quoted else text


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
