"""Cases whose results do not depend on when anything happens, as the reference finds by trying other times."""

from __future__ import annotations

from dataclasses import replace

from tests.property.comparison import expected
from tests.property.generator import Case
from tests.property.reference import Result

TRIES = 4
MORE_TRIES = 60
"""Times that are tried before a difference is a disagreement."""


def timeless(case: Case, tries: int = TRIES) -> Result | None:
    """The result if it is the same with any times; what was undone is then in order of names. None: it is not."""
    wanted = unordered(expected(case, variants=2))
    for number in range(tries):
        script = replace(case.script, times=number + 1)
        other = expected(Case(case.spec, script), variants=2)
        if wanted is None or unordered(other) != wanted:
            return None
    return wanted


def unordered(result: Result | None) -> Result | None:
    """A result in which what was undone is in order of names."""
    if result is None:
        return None
    runs = {path: {**run, "undone": sorted(run["undone"], key=str)} for path, run in result.runs.items()}
    return Result(runs, result.signals)
