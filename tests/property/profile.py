"""How hard the property tests try: ``PARTITA_PROPERTY_SCALE=10`` tries ten times as many examples."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

SCALE = int(os.environ.get("PARTITA_PROPERTY_SCALE", "1"))
CHUNK = 50
"""Seeds that one test takes, so that several processes can share them."""


def examples(count: int) -> settings:
    """So many examples, the same ones at every run, so that a failure can be seen again; no time limit on one."""
    phases = (Phase.explicit, Phase.generate, Phase.shrink)
    return settings(
        max_examples=count * SCALE,
        deadline=None,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        phases=phases,
    )


def chunks(count: int) -> list[int]:
    """First seeds of chunks that make up so many examples."""
    return list(range(0, count * SCALE, CHUNK))
