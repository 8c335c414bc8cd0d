"""Every hostile expression ends by the budget: a larger list is refused, and what is done grows with what is paid."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import orjson
import pytest

from bench.hostile import CASES, LONGEST, Hostile, fits, largest
from partita.domain.expressions import limits
from partita.domain.manifest.limits import SPEC_BYTES

FIXED = {"many_tokens", "many_texts"}
"""Cases that are large themselves, whatever the list is."""
SIZED = {"deep_template"}
"""Cases that the size of a definition bounds: what is copied and not computed costs no steps."""
WORK = 6
"""Calls of functions, ours and Python's, that one visit may cost at most."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_budget_bounds_it(case: Hostile) -> None:
    template, count = case.template(), largest(case, 10)
    if case.name in FIXED:
        assert not fits(Hostile("double", case.value * 2).template(), case.scope(1))
    elif case.name in SIZED:
        assert len(orjson.dumps(case.value * 3)) > SPEC_BYTES
    else:
        assert count < LONGEST
        assert not fits(template, case.scope(2 * count + 2))
    assert _calls(case, count) < WORK * limits.VISITS


def _calls(case: Hostile, count: int) -> int:
    """Calls that evaluating it makes."""
    made = 0

    def count_one(_: FrameType, event: str, __: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    template, scope = case.template(), case.scope(count)
    sys.setprofile(count_one)
    try:
        fits(template, scope)
    finally:
        sys.setprofile(None)
    return made
