"""What kubectl's completion is answered after ``kubectl partita``."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.commands import Cli

ROOT = Path(__file__).parents[2]
RUN = """
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {{name: {}}}
spec: {{definitionRef: {{name: waits}}}}
"""
MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: waits}
spec: {nodes: [{name: answer, waitForEvent: {}}]}
""" + "".join(map(RUN.format, ("pause-1", "other", "pause-2")))
COMPLETE = "from partita.cli.completion import main; main()"


def completed(*words: str) -> tuple[list[str], str]:
    """The candidates with their descriptions, and the number at the end."""
    command = [sys.executable, "-c", COMPLETE, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    *lines, last = done.stdout.splitlines()
    return [line for line in lines if line], last


def test_the_program_has_the_name_that_kubectl_looks_for() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts["kubectl_complete-partita"] == "partita.cli.completion:main"


def test_commands_are_those_of_the_plugin_with_what_they_do() -> None:
    candidates, last = completed("")
    names = {line.split("\t")[0] for line in candidates}
    assert {"submit", "get", "list", "signal", "wait"} <= names
    assert names.isdisjoint({"migrate", "worker", "operator", "dev"})
    assert all("\t" in line for line in candidates), "a line without a description is the rest of a folded one"
    assert next(line for line in candidates if line.startswith("get\t")).startswith("get\tShow one run")
    assert last == ":4"


@pytest.mark.parametrize(
    ("words", "expected", "last"),
    [
        (("sus",), {"suspend"}, ":4"),
        (("get", "one", "--no"), {"--node"}, ":4"),
        (("list", "--output", ""), {"table", "json"}, ":4"),
        (("get", "it's"), set(), ":4"),
        (("submit", ""), set(), ":0"),
        (("submit", "x.yaml", "--tag", ""), set(), ":0"),
        (("submit", "--inp"), {"--inputs"}, ":4"),
        (("list", "--database-"), set(), ":4"),
    ],
)
def test_words_are_completed(words: tuple[str, ...], expected: set[str], last: str) -> None:
    candidates, said = completed(*words)
    assert ({line.split("\t")[0] for line in candidates}, said) == (expected, last)


def test_without_a_cluster_no_run_is_offered_and_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    assert completed("get", "") == ([], ":4")


def test_names_of_runs_of_a_database(on_database: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell asks ``partita`` itself."""
    file = tmp_path / "runs.yaml"
    file.write_text(MANIFEST)
    assert on_database("submit", str(file)).code == 0
    monkeypatch.setenv("_PARTITA_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "partita get pause")
    command = [str(Path(sys.executable).with_name("partita"))]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    assert shown.splitlines() == ["pause-2\twaits, Running", "pause-1\twaits, Running"]
