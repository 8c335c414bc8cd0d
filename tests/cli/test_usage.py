"""What a person sees of wrong words, missing databases and manifests with problems."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from partita.cli.commands import runs
from partita.cli.exits import MEANING, Exit
from tests.cli.commands import Cli, commands

ROOT = Path(__file__).parents[2]


def test_help_lists_the_exit_codes(partita: Cli) -> None:
    shown = " ".join(partita("--help").out.split())
    for code, text in MEANING.items():
        assert f"{code.value} {text}" in shown


def test_every_command_and_option_has_a_help_text() -> None:
    bare = [
        f"{' '.join(path)} {parameter.name}"
        for path, command in commands()
        for parameter in command.params
        if parameter.name != "help" and not getattr(parameter, "help", "")
    ]
    assert bare == []
    assert [path for path, command in commands() if not command.help] == []


def test_help_loads_none_of_the_layers() -> None:
    """They take seconds on a slow machine; a shell that completes words must not wait for them."""
    heavy = {"asyncpg", "kopf", "kubernetes", "jsonschema", "cel", "yaml", "aiohttp", "partita.engine.engine"}
    code = "import sys, partita.cli.main as m; m.build(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert heavy.isdisjoint(loaded)


def test_the_plugin_speaks_of_clusters_only(monkeypatch: pytest.MonkeyPatch, partita: Cli, database_url: str) -> None:
    monkeypatch.setenv("PARTITA_DATABASE_URL", database_url)
    plugin = partita.named("/usr/local/bin/kubectl-partita")
    assert "migrate" not in plugin("--help").out
    assert "Usage: kubectl partita" in plugin("--help").out
    assert plugin("list").code == Exit.UNAVAILABLE
    assert plugin("list", "--database-url", database_url).code == Exit.USAGE
    missing = plugin("get", "x", "--kubeconfig", "/nonexistent")
    assert missing.code == Exit.UNAVAILABLE


def test_a_cluster_that_is_named_wins_over_a_database_of_the_environment(on_database: Cli) -> None:
    assert on_database("list").code == Exit.OK
    refused = on_database("list", "--kubeconfig", "/nonexistent")
    assert refused.code == Exit.UNAVAILABLE
    assert "kubernetes" in refused.err


def test_a_defect_is_no_failed_run(partita: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object, __: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(runs, "on_backend", broken)
    assert partita("get", "x").code == Exit.DEFECT


def test_ctrl_c_ends_quietly(database_url: str) -> None:
    """A command that follows a run for ever, and a signal as a terminal sends it."""
    environment = {**os.environ, "PARTITA_DATABASE_URL": database_url, "KUBECONFIG": "/nonexistent"}
    command = [sys.executable, "-m", "tests.cli.interrupted"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        limit = Timer(120, process.kill)
        limit.start()
        try:
            assert process.stdout.readline().startswith("{")
            process.send_signal(signal.SIGINT)
            errors = process.communicate()[1]
        finally:
            process.kill()
            limit.cancel()
    assert process.returncode == Exit.INTERRUPTED
    assert "Traceback" not in errors


def test_a_database_that_does_not_answer_is_unavailable(partita: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITA_DATABASE_PATIENCE_MS", "0")
    refused = partita("list", "--database-url", "postgresql://127.0.0.1:1/none")
    assert refused.code == Exit.UNAVAILABLE
    assert refused.err.startswith("error: ")
    assert "Traceback" not in refused.err


def test_without_database_and_cluster_it_says_what_to_name(partita: Cli) -> None:
    refused = partita("list")
    assert refused.code == Exit.UNAVAILABLE
    assert "--kubeconfig" in refused.err


def test_migrate_needs_a_database(partita: Cli) -> None:
    refused = partita("migrate")
    assert refused.code == Exit.USAGE
    assert "PARTITA_DATABASE_URL" in refused.err


def test_an_unknown_setting_is_named(partita: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITA_ENGINE_BATCHSIZE", "5")
    refused = partita("list")
    assert refused.code == Exit.USAGE
    assert "PARTITA_ENGINE_BATCH_SIZE" in refused.err


@pytest.mark.parametrize("words", [("get",), ("wait", "x", "--timeout", "soon"), ("list", "--phase", "Sleeping")])
def test_wrong_words_are_usage_errors(partita: Cli, words: tuple[str, ...]) -> None:
    assert partita(*words).code == Exit.USAGE


def test_lint_finds_the_examples_good(partita: Cli) -> None:
    files = [str(file) for file in sorted((ROOT / "examples").glob("*.yaml"))]
    checked = partita("lint", *files)
    assert checked.code == Exit.OK, checked.out
    assert checked.out.count(": ok") >= 2


def test_lint_lists_every_problem_with_its_place(partita: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "apiVersion: partita.dev/v1alpha1\nkind: WorkflowDefinition\nmetadata: {name: bad}\nspec:\n  nodes:\n"
        "    - {name: a, tsk: {type: x}}\n    - {name: b, task: {type: x}, dependsOn: [z]}\n"
    )
    checked = partita("lint", str(file), "-o", "json")
    assert checked.code == Exit.USAGE
    paths = {problem["path"] for problem in checked.json[0]["problems"]}
    assert any(path.startswith("spec.nodes[0]") for path in paths)
    assert any(path.startswith("spec.nodes[1].dependsOn") for path in paths)


def test_lint_checks_inputs_against_definitions_of_the_same_file(partita: Cli, tmp_path: Path) -> None:
    text = (ROOT / "examples" / "order.yaml").read_text().replace("amount: 1200", "amount: none")
    (tmp_path / "order.yaml").write_text(text)
    checked = partita("lint", str(tmp_path / "order.yaml"))
    assert checked.code == Exit.USAGE
    assert "spec.input.amount" in checked.out


def test_a_file_that_is_not_there(partita: Cli) -> None:
    checked = partita("lint", "nowhere.yaml")
    assert checked.code == Exit.USAGE
    assert "nowhere.yaml" in checked.out + checked.err
