#!/usr/bin/env python3
"""Runs the tests in stages, each a pytest of its own, and says at the end what ran, what did not, and why.

usage: run_tests.py [--strict] [--one-at-a-time] [STAGE…]      all stages without names; --list shows them

A stage is what needs one environment: a PostgreSQL version, a Kubernetes API. Exit code 1 when any test failed; with
--strict (CI) also when a stage could not run or a test was skipped for another reason than a missing Docker engine.
The stages on Kubernetes wait for most of their time, so that they run beside the others, which compute: what pytest
says is then shown when its stage has ended. With --one-at-a-time, or when all chosen stages are of one kind, it is
shown at once.
"""

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / ".state" / "tests"
NO_TESTS_COLLECTED = 5
LIMIT_SECONDS = 30 * 60
ALLOWED_REASON = "Docker"
"""A skip whose reason names this is no failure under --strict: no Docker engine runs on the project's own CI."""


def always() -> str | None:
    """Say that a stage can run anywhere."""
    return None


def needs_debian_postgres(version: int) -> Callable[[], str | None]:
    """Return a check for the server that Debian's package of this version installs."""

    def problem() -> str | None:
        if Path(f"/usr/lib/postgresql/{version}/bin/postgres").exists():
            return None
        return f"PostgreSQL {version} is not installed; try: apt-get install postgresql-{version}"

    return problem


def needs_pgbouncer() -> str | None:
    """Return what is missing for tests that pass through PgBouncer."""
    if shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return None
    return "PgBouncer is not installed; try: apt-get install pgbouncer"


@dataclass(frozen=True, slots=True)
class Stage:
    """Tests that share one environment; `problem` says why they cannot run here, or None."""

    name: str
    title: str
    folders: tuple[str, ...]
    lane: str = "computing"
    """Stages of one lane run one after the other, lanes side by side."""
    workers: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    problem: Callable[[], str | None] = always

    def present(self) -> list[str]:
        """Return those of its folders that hold tests."""
        return [folder for folder in self.folders if any((ROOT / folder).rglob("test_*.py"))]


ON_POSTGRES = ("tests/store", "tests/engine")
OWN_SERVER = os.environ.get("PARTITA_DATABASE_URL")

STAGES = (
    Stage("unit", "unit and property tests", ("tests/unit", "tests/property"), workers=2),
    Stage(
        "postgres",
        "store, engine, worker, CLI, documents and benchmarks on "
        + ("the server of PARTITA_DATABASE_URL" if OWN_SERVER else "PostgreSQL 18"),
        (*ON_POSTGRES, "tests/worker", "tests/cli", "tests/docs", "tests/bench"),
        workers=2,
    ),
    Stage(
        "postgres-16",
        "store and engine on PostgreSQL 16",
        ON_POSTGRES,
        workers=2,
        environment={"PARTITA_TEST_POSTGRES": "16"},
    ),
    Stage(
        "postgres-15",
        "store and engine on PostgreSQL 15",
        ON_POSTGRES,
        workers=2,
        environment={"PARTITA_TEST_POSTGRES": "15"},
        problem=needs_debian_postgres(15),
    ),
    Stage(
        "pgbouncer",
        "store, engine and worker through PgBouncer in transaction mode",
        (*ON_POSTGRES, "tests/worker", "tests/pooled"),
        workers=2,
        environment={"PARTITA_TEST_PGBOUNCER": "1"},
        problem=needs_pgbouncer,
    ),
    Stage("kube", "the operator on a real Kubernetes API", ("tests/kube",), lane="waiting"),
    Stage(
        "chart",
        "the Helm chart, rendered and on a real Kubernetes API",
        ("tests/chart",),
        lane="waiting",
        environment={"PYTEST_TIMEOUT": "1200"},  # the first test builds Helm where that is not done beforehand
    ),
    Stage("faults", "killed processes and restarted servers", ("tests/faults",), lane="waiting"),
    Stage("e2e", "the product as a person uses it", ("e2e",), lane="waiting"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a stage; `not_run` is the reason why it did not run."""

    stage: Stage
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skips: Mapping[str, int] = field(default_factory=dict)
    broken: str = ""
    not_run: str = ""

    def fails(self, *, strict: bool) -> bool:
        """Return whether this outcome makes the whole run fail."""
        if self.failed or self.broken:
            return True
        reasons = [*self.skips, *([self.not_run] if self.not_run else [])]
        return strict and any(ALLOWED_REASON not in reason for reason in reasons)

    def describe(self) -> str:
        """Return the lines of the summary."""
        if self.not_run:
            return f"  {self.stage.name:<12} not run: {self.not_run}"
        skipped = sum(self.skips.values())
        counts = f"{self.passed} passed, {self.failed} failed, {skipped} skipped in {self.seconds:.0f} s"
        lines = [f"  {self.stage.name:<12} {counts}{f' — {self.broken}' if self.broken else ''}"]
        lines += [f"  {'':<12} {count} times skipped: {reason}" for reason, count in self.skips.items()]
        return "\n".join(lines)


class Screen:
    """Standard output, of which a stage that runs beside another gets a turn when it has ended."""

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._turn = threading.Lock()

    def say(self, text: str) -> None:
        """Print a line."""
        with self._turn:
            print(text, flush=True)

    def pytest(self, stage: Stage, arguments: list[str]) -> int:
        """Run pytest for a stage, show what it says, and return its exit code."""
        if not self._shared:
            return _pytest(stage, arguments, None)
        log = REPORTS / f"{stage.name}.log"
        self.say(f"== {stage.name}: begins; its output is in {log.relative_to(ROOT)} ==")
        with log.open("w") as file:
            code = _pytest(stage, arguments, file)
        self.say(f"\n== {stage.name}: {stage.title} ==\n{log.read_text(errors='replace').rstrip()}")
        return code


def run_all(stages: Sequence[Stage], arguments: list[str], *, one_at_a_time: bool) -> list[Outcome]:
    """Run stages, lanes side by side; outcomes in the order of the stages."""
    lanes = {"all" if one_at_a_time else stage.lane: None for stage in stages}
    screen = Screen(shared=len(lanes) > 1)
    stopped = threading.Event()

    def run_lane(name: str) -> list[Outcome]:
        mine = [stage for stage in stages if name in (stage.lane, "all")]
        return [run(stage, arguments, screen) for stage in mine if not stopped.is_set()]

    with ThreadPoolExecutor(len(lanes)) as pool:
        futures = [pool.submit(run_lane, name) for name in lanes]
        try:
            outcomes = [outcome for future in futures for outcome in future.result()]
        finally:
            stopped.set()  # after Ctrl-C, which pytest gets as well, no lane begins another stage
    return sorted(outcomes, key=lambda outcome: STAGES.index(outcome.stage))


def run(stage: Stage, arguments: list[str], screen: Screen) -> Outcome:
    """Run one stage."""
    if (problem := stage.problem()) is not None:
        screen.say(f"\n== {stage.name}: not run: {problem} ==")
        return Outcome(stage, not_run=problem)
    if not (folders := stage.present()):
        return Outcome(stage, not_run=f"no tests in {', '.join(stage.folders)}")
    report = REPORTS / f"{stage.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    begin = time.monotonic()
    code = screen.pytest(stage, [*folders, f"--junitxml={report}", *_parallel(stage), *arguments])
    seconds = time.monotonic() - begin
    if code == NO_TESTS_COLLECTED:
        return Outcome(stage, not_run=f"no tests in {', '.join(folders)}")
    return _read(stage, report, seconds, code)


def _parallel(stage: Stage) -> list[str]:
    return ["-n", str(stage.workers), "--dist", "worksteal"] if stage.workers else []


def _pytest(stage: Stage, arguments: list[str], output: IO[str] | None) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-o", "junit_family=xunit2", *arguments]
    if output is None:
        print(f"\n== {stage.name}: {stage.title} ==", flush=True)
    try:
        return subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | stage.environment,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            check=False,
            timeout=LIMIT_SECONDS,
        ).returncode
    except subprocess.TimeoutExpired:
        return -1


def _read(stage: Stage, report: Path, seconds: float, code: int) -> Outcome:
    if not report.exists():
        return Outcome(stage, seconds, broken=f"pytest ended with {code} and wrote no report")
    passed = failed = 0
    skips: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - written by the pytest that we ran
        if (skip := case.find("skipped")) is not None:
            skips[skip.get("message", "no reason given")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        else:
            passed += 1
    broken = f"pytest ended with {code}" if code and not failed else ""
    return Outcome(stage, seconds, passed, failed, skips, broken)


def main() -> int:
    """Run the stages that the command line names; returns the exit code."""
    names = [stage.name for stage in STAGES]
    parser = argparse.ArgumentParser(description="Run the tests in stages.")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--strict", action="store_true", help="fail also on what was not run, but for Docker")
    parser.add_argument("--one-at-a-time", action="store_true", help="no stage beside another")
    parser.add_argument("--list", action="store_true", help="show the stages")
    options, rest = parser.parse_known_args()
    if unknown := set(options.stages) - set(names):
        parser.error(f"unknown stage {', '.join(sorted(unknown))}; expected of {', '.join(names)}")
    chosen = [stage for stage in STAGES if not options.stages or stage.name in options.stages]
    if options.list:
        print("\n".join(f"{stage.name:<12} {stage.title}" for stage in chosen))
        return 0
    begin = time.monotonic()
    outcomes = run_all(chosen, rest, one_at_a_time=options.one_at_a_time)
    return summarise(outcomes, time.monotonic() - begin, strict=options.strict)


def summarise(outcomes: list[Outcome], seconds: float, *, strict: bool) -> int:
    """Print what came of every stage and return the exit code."""
    print("\n== summary ==")
    for outcome in outcomes:
        print(outcome.describe())
    passed, failed = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("passed", "failed"))
    skipped = sum(sum(outcome.skips.values()) for outcome in outcomes)
    print(f"tests: {passed} passed, {failed} failed, {skipped} skipped in {seconds:.0f} s")
    bad = [outcome.stage.name for outcome in outcomes if outcome.fails(strict=strict)]
    if bad:
        print(f"failed: {', '.join(bad)}" + (" (nothing may be left out in this mode)" if strict else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
