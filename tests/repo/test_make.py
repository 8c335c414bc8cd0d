"""The Makefile and what runs it: people, this project's CI, GitHub Actions."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
import yaml

from scripts import run_tests
from tests.repo.tree import ROOT, files_of, short, text

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = re.findall(r"^([a-z0-9-]+):(?!=)", MAKEFILE, re.MULTILINE)


def make(*arguments: str) -> str:
    """What make prints."""
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_help_lists_every_target() -> None:
    listed = re.findall(r"^  make ([a-z0-9-]+) +\S", make("help"), re.MULTILINE)
    assert sorted(listed) == sorted(TARGETS)


def test_help_is_what_make_alone_shows() -> None:
    assert make() == make("help")


def test_no_target_is_taken_for_a_file() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert sorted(phony[1].split()) == sorted(TARGETS)


def test_every_test_is_in_a_stage() -> None:
    in_check = "tests/repo"
    staged = {folder for stage in run_tests.STAGES for folder in stage.folders} | {in_check}
    tests = [short(path) for path in files_of(".py") if path.name.startswith("test_")]
    assert tests
    assert [test for test in tests if not any(test.startswith(f"{folder}/") for folder in staged)] == []


@pytest.mark.parametrize("script", [".ci/run", *(short(path) for path in files_of(".sh"))])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert text(ROOT / script).splitlines()[0] == "#!/usr/bin/env bash"
    subprocess.run(["bash", "-n", script], cwd=ROOT, check=True)


def test_ci_runs_what_people_run() -> None:
    script = text(ROOT / ".ci" / "run")
    assert re.search(r"^make check$", script, re.MULTILINE)
    assert re.search(r"^make test STRICT=1$", script, re.MULTILINE)
    workflow = yaml.safe_load(text(ROOT / ".github" / "workflows" / "ci.yaml"))
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert {"make check", "make e2e"} <= set(commands)
    assert any(command.startswith("make test STRICT=1 ") for command in commands)
    made = {word for command in commands for word in re.findall(r"\bmake ([a-z0-9-]+)", command)}
    assert made <= set(TARGETS)
