"""How hard the property tests try."""

from __future__ import annotations

from hypothesis import Phase, settings


def examples(count: int) -> settings:
    """So many examples, the same ones at every run, so that a failure can be seen again; no time limit on one."""
    phases = (Phase.explicit, Phase.generate, Phase.shrink)
    return settings(
        max_examples=count, deadline=None, derandomize=True, database=None, report_multiple_bugs=False, phases=phases
    )
