"""Command-line options that every script understands, so that one command can hand them to all.

Invariant: ``--quick`` makes every script finish in seconds; its figures mean nothing, and it exists so that a test can
tell whether the scripts work.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How much is measured, and how."""

    runs: int
    """Workflow runs of one measurement."""
    repeats: int
    """Measurements, of which the median is printed."""
    workers: int
    """Worker processes; 0 means that one process submits and works."""
    slots: int
    """Tasks that one worker executes at the same time."""
    submitters: int
    """Starts that are under way at the same time."""
    call: int = 0
    """Runs that one call of ``Engine.start_many`` starts; 0: each start is a request of its own."""
    quick: bool = False


DEFAULTS: Final = {
    "runs": ("workflow runs of one measurement", 4_000, 60),
    "repeats": ("measurements, of which the median is printed", 7, 2),
    "workers": ("worker processes; 0: the process that submits also works", 1, 0),
    "slots": ("tasks that one worker executes at the same time", 400, 20),
    "submitters": ("starts that are under way at the same time", 400, 20),
    "call": ("runs that one call starts; 0: one start a call", 0, 10),
}


def parse(arguments: Sequence[str], name: str, description: str, **defaults: int) -> Options:
    """Options of a script; ``defaults`` replaces those that are not good for it."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {name}", description=description)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    for option, (text, usual, _) in DEFAULTS.items():
        shown = defaults.get(option, usual)
        parser.add_argument(f"--{option}", type=int, default=None, metavar="N", help=f"{text} ({shown})")
    found = parser.parse_args(arguments)
    chosen = {option: _choose(found, option, defaults) for option in DEFAULTS}
    return Options(**chosen, quick=found.quick)


def _choose(found: argparse.Namespace, option: str, defaults: dict[str, int]) -> int:
    given: int | None = getattr(found, option)
    _, usual, tiny = DEFAULTS[option]
    if given is not None:
        return given
    return tiny if found.quick else defaults.get(option, usual)


def as_setting(options: Options) -> dict[str, int]:
    """The options for the JSON line."""
    return {
        entry.name: getattr(options, entry.name) for entry in fields(options) if entry.name not in {"quick", "repeats"}
    }
