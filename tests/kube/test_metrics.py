"""The text that Prometheus reads, and who says what."""

from __future__ import annotations

import re

from partita.kube import metric_families as families
from partita.kube.vitals import Vitals
from partita.probes.families import BUILD, OF_EVERY_PROCESS
from partita.probes.metrics import Family, Metrics
from partita.worker import metric_families as workers

PLAIN = Family(name="runs_total", kind="counter", help="Runs.\nAll of them.")
LABELLED = Family(name="tasks", kind="gauge", help="Tasks \\ each.", labels=("queue", "zone"), everyone=True)
ABSENT = Family(name="nothing", kind="gauge", help="Never set.")


def test_the_format() -> None:
    metrics = Metrics((PLAIN, LABELLED, ABSENT))
    metrics.add(PLAIN)
    metrics.add(PLAIN, by=2)
    metrics.set(LABELLED, 0.25, "b", 'a "quoted"\\name\n')
    metrics.set(LABELLED, float("inf"), "a", "x")
    assert metrics.text() == (
        "# HELP runs_total Runs.\\nAll of them.\n"
        "# TYPE runs_total counter\n"
        "runs_total 3\n"
        "# HELP tasks Tasks \\\\ each.\n"
        "# TYPE tasks gauge\n"
        'tasks{queue="a",zone="x"} +Inf\n'
        'tasks{queue="b",zone="a \\"quoted\\"\\\\name\\n"} 0.25\n'
    )


def test_a_standby_forgets_what_a_leader_said() -> None:
    metrics = Metrics((PLAIN, LABELLED, ABSENT))
    metrics.add(PLAIN)
    metrics.set(LABELLED, 1, "a", "b")
    metrics.ask(ABSENT, lambda: 7)
    assert metrics.value(ABSENT) == 7
    metrics.clear()
    assert metrics.text() == '# HELP tasks Tasks \\\\ each.\n# TYPE tasks gauge\ntasks{queue="a",zone="b"} 1\n'


def test_labels_that_are_gone_are_not_said_any_more() -> None:
    metrics = Metrics((LABELLED,))
    metrics.set(LABELLED, 1, "a", "b")
    metrics.replace(LABELLED, {("c", "d"): 2})
    assert metrics.value(LABELLED, "a", "b") is None
    assert metrics.value(LABELLED, "c", "d") == 2


def test_names_follow_the_conventions() -> None:
    for own in (families.FAMILIES, workers.FAMILIES):
        names = [family.name for family in (BUILD, *own, *OF_EVERY_PROCESS)]
        assert len(set(names)) == len(names)
    for family in (BUILD, *families.FAMILIES, *workers.FAMILIES, *OF_EVERY_PROCESS):
        assert re.fullmatch(r"(partita|process)_[a-z_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert family.help.endswith("."), family.name


def test_a_process_tells_its_version_and_what_it_uses() -> None:
    vitals = Vitals()
    said = dict(line.rsplit(" ", 1) for line in vitals.text().splitlines() if not line.startswith("#"))
    assert said["partita_operator_leader"] == "0"
    assert float(said["process_resident_memory_bytes"]) > 10_000_000
    assert float(said["process_cpu_seconds_total"]) > 0
    assert 0 <= float(said["partita_event_loop_age_seconds"]) < 60
    assert any(name.startswith('partita_build_info{version="') for name in said)
