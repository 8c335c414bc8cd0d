"""Every script runs with tiny sizes and ends with its figures as JSON lines; what the times are is never asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import LAST, SCRIPTS, main
from bench.hostile import CASES
from bench.lists import FILTERS
from partita.store.embedded import Server

ROOT = Path(__file__).parents[2]
FIELDS = {"figure", "value", "unit", "goal", "better", "met", "runs", "min", "max", "load", "setting"}
LESS_THAN_A_TICK = {"submit_python", "submit_postgres"}
"""Processor time comes in ticks of 10 ms, which tiny rounds need not reach."""
KINDS = ("", "_bare_sql", "_ratio", "_least", "_least_ratio")
FIGURES = {
    "ceiling": {"ceiling_1_connections", "ceiling_2_connections", "ceiling"},
    "throughput": {"throughput", "throughput_share_of_bare_sql", "python_cpu", "postgres_cpu"},
    "latency": {f"latency_{share}{kind}" for share in ("p50", "p99") for kind in KINDS},
    "counts": {"wal", "commits", "hot_workflow_runs", "hot_task_instances", "statements"},
    "submit": {"submit", "submit_one_by_one", "submit_python", "submit_postgres", "submit_two_processes"},
    "fanout": {
        *("item_of_60", "item_growth", "narrow_item_of_60", "narrow_item_growth", "node_of_6", "node_growth"),
        *("join_of_64", "child_of_6", "undo_of_6", "children"),
    },
    "expressions": {
        *(f"{figure}_{name}" for figure in ("decision", "stall") for name in ("chain", "switch", "items")),
        *(f"expression_{case.name}" for case in CASES[::8]),
        "expression_worst",
    },
    "snapshot": {
        *(f"{held}_{figure}" for held in ("snapshot", "snapshot_and_locks") for figure in ("kept", "kept_at_the_end")),
        *(f"{held}_{figure}" for held in ("snapshot", "snapshot_and_locks") for figure in ("postgres_cpu", "hot")),
        *(f"{held}_cpu_kept" for held in ("snapshot", "snapshot_and_locks")),
        "snapshot_kept_by_a_plain_queue",
    },
    "hot_run": {
        f"hot_run_{count}{mode}{figure}"
        for count in (1, 2)
        for mode in ("", "_plain_locking")
        for figure in ("", "_longest_wait", "_others_p99")
    },
    "drop": {
        *("drop_month", "drop_month_stall", "drop_month_stall_idle", "compact_month", "compact_month_stall"),
        *("drop_month_detached", "delete_month", "delete_month_stall"),
    },
    "claims": {f"claim_of_{ready}_ready_in_{lanes}_lanes" for ready in (100, 500) for lanes in (1, 16)},
    "sweep": {"sweep_months_1", "sweep_months_2", "sweep_workers_1", "sweep_batch_50"},
    "growth": {
        f"growth_{part}_{figure}_kept" for part in ("months", "in_flight") for figure in ("throughput", "postgres_cpu")
    },
    "pooled": {
        *(
            f"{way}_{figure}"
            for way in ("direct", "pooled")
            for figure in ("postgres_cpu", "python_cpu", "latency_p50")
        ),
        *("pooled_pgbouncer_cpu", "pooled_postgres_cpu_ratio", "pooled_latency_p50_ratio"),
    },
    "lists": {
        *(f"list_{kind}_p99_{size}" for kind in ("one", "several") for size in (1000, 3000)),
        *(f"list_growth_{name}" for name in FILTERS),
    },
}
KUBE = {"kube_path", "kube_rate", "kube_scale"}
"""Scripts that need a Kubernetes API; their test is in ``tests/kube/test_bench.py``."""


def bench(server: Server | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PARTITA_DATABASE_URL"}
    if server is not None:
        environment["PARTITA_DATABASE_URL"] = server.url()
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(set(line) == FIELDS for line in lines)
    return {line["figure"]: line for line in lines}


def test_every_script_is_covered() -> None:
    assert set(SCRIPTS) == {*FIGURES, *KUBE}


def test_every_script_is_in_the_page_of_benchmarks() -> None:
    page = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    assert [name for name in (*SCRIPTS, *LAST) if f"\n| `{name}` |" not in page] == []


@pytest.mark.parametrize("script", [*SCRIPTS, *LAST])
def test_an_option_that_a_script_does_not_know_is_refused(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is measured: a mistyped size must not measure another."""
    with pytest.raises(SystemExit) as refused:
        main([script, "--no-such-option"])
    assert refused.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


@pytest.mark.parametrize(
    "script",
    [
        "ceiling",
        "latency",
        "submit",
        "fanout",
        "expressions",
        "snapshot",
        "hot_run",
        "growth",
        "drop",
        "claims",
        "sweep",
        "lists",
        "pooled",
    ],
)
def test_script_prints_its_figures(durable_server: Server, script: str) -> None:
    found = figures(bench(durable_server, script, "--quick"))
    assert set(found) == FIGURES[script]
    for name, line in found.items():
        assert line["min"] <= line["value"] <= line["max"], line
        assert line["value"] > 0 or name in LESS_THAN_A_TICK, line


def test_throughput_with_worker_processes(durable_server: Server) -> None:
    found = figures(bench(durable_server, "throughput", "--quick", "--workers", "1", "--repeats", "1"))
    assert set(found) == FIGURES["throughput"]
    assert found["throughput"]["setting"]["workers"] == 1
    assert found["throughput"]["goal"] == 12_000


def test_counts_on_a_server_of_its_own() -> None:
    """Statements are counted in the log of a server that the script starts itself."""
    found = figures(bench(None, "counts", "--quick"))
    assert set(found) == FIGURES["counts"]
    assert found["statements"]["value"] > 5
    assert found["wal"]["value"] > 500


def test_counts_without_the_servers_log(durable_server: Server) -> None:
    found = figures(bench(durable_server, "counts", "--quick", "--repeats", "1"))
    assert found["statements"]["value"] is None
    assert "log" in found["statements"]["setting"]["why"]


def test_several_scripts_end_with_a_table_and_all_lines(durable_server: Server) -> None:
    done = bench(durable_server, "ceiling", "submit", "--quick")
    assert set(figures(done)) == FIGURES["ceiling"] | FIGURES["submit"]
    assert "figure" in done.stderr
    assert "runs/s" in done.stderr


def test_failing_script_is_named_and_the_others_are_printed(durable_server: Server) -> None:
    """A worker without slots cannot be: the script that needs one fails, the other does not."""
    done = bench(durable_server, "ceiling", "throughput", "--quick", "--slots", "-1")
    assert done.returncode == 1
    assert {json.loads(line)["figure"] for line in done.stdout.splitlines()} == FIGURES["ceiling"]
    assert "failed: throughput" in done.stderr


def test_server_that_is_not_durable_is_refused(database_url: str) -> None:
    environment = {**os.environ, "PARTITA_DATABASE_URL": database_url}
    command = [sys.executable, "-m", "bench", "submit", "--quick"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "fsync is off" in done.stderr
