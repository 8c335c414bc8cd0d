"""``python -m bench [NAME …] [options]``: run the scripts one after the other and end with a table and the JSON lines.

Invariant: every script runs in a process of its own, so that none inherits the heap, the server or the failure of
another; one that fails is named at the end, and the others are still printed.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from bench.figures import say, table

SCRIPTS: Final = (
    "ceiling",
    "throughput",
    "latency",
    "counts",
    "submit",
    "fanout",
    "expressions",
    "kube_path",
    "kube_rate",
    "kube_scale",
    "snapshot",
    "hot_run",
    "growth",
    "claims",
    "sweep",
    "drop",
    "pooled",
    "lists",
)
LAST: Final = ("peers",)
"""Scripts that follow the others: they install what they measure, into the user's cache."""
_ROOT: Final = Path(__file__).parents[1]
_OPTIONS: Final = "[--quick] [--runs N] [--repeats N] [--workers N] [--slots N] [--submitters N]"
_USAGE: Final = f"""usage: python -m bench [NAME …] {_OPTIONS}

Without names all figures are measured: {", ".join((*SCRIPTS, *LAST))}.
A single script explains its options with --help.
PARTITA_DATABASE_URL names the server to measure; without it one is started for each script and removed afterwards."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one script printed, and how it ended."""

    name: str
    code: int
    lines: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """Run one script in this process, several in processes of their own; returns the exit code."""
    names = [argument for argument in arguments if argument in (*SCRIPTS, *LAST)]
    options = [argument for argument in arguments if argument not in names]
    if len(names) == 1:
        importlib.import_module(f"bench.{names[0]}").main(options)
        return 0
    if "--help" in options or "-h" in options:
        say(_USAGE)
        return 0
    outcomes = [_script(name, options) for name in names or (*SCRIPTS, *LAST)]
    return _summary(outcomes)


def _script(name: str, options: Sequence[str]) -> Outcome:
    """Run a script; what it says to people passes through."""
    say(f"\n── {name} (load average {os.getloadavg()[0]:.2f})")
    begun = time.monotonic()
    command = (sys.executable, "-m", "bench", name, *options)
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=False)
    lines = tuple(line for line in done.stdout.decode().splitlines() if line.startswith('{"figure"'))
    say(f"{name}: {len(lines)} figures in {time.monotonic() - begun:.0f} s" + (" — FAILED" if done.returncode else ""))
    return Outcome(name, done.returncode, lines)


def _summary(outcomes: Sequence[Outcome]) -> int:
    lines = [line for outcome in outcomes for line in outcome.lines]
    failed = [outcome.name for outcome in outcomes if outcome.code]
    parsed: list[dict[str, Any]] = [orjson.loads(line) for line in lines]
    say("\n" + table(parsed))
    if failed:
        say(f"failed: {', '.join(failed)}; try: python -m bench {failed[0]}")
    for line in lines:
        print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
