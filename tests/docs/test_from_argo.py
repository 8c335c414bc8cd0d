"""docs/from-argo-workflows.md: both forms of the workflow say the same, and Partita's does it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from partita.domain.manifest import parse_definition
from partita.domain.model import Definition
from tests.docs.blocks import ROOT, blocks

PAGE = ROOT / "docs" / "from-argo-workflows.md"
ARGO, OURS = (block.text for block in blocks(PAGE) if block.language == "yaml")
(TASKS,) = (block.text for block in blocks(PAGE) if block.language == "python")


def argo() -> tuple[dict[str, Any], dict[str, Any]]:
    """Argo's tasks and templates by name."""
    spec = yaml.safe_load(ARGO)["spec"]
    templates = {one["name"]: one for one in spec["templates"]}
    return {one["name"]: one for one in templates[spec["entrypoint"]]["dag"]["tasks"]}, templates


def ours() -> Definition:
    """Partita's definition."""
    definition, problems = parse_definition(next(yaml.safe_load_all(OURS)))
    assert definition is not None, problems
    return definition


def test_both_have_the_same_steps_and_edges() -> None:
    tasks, _ = argo()
    edges = {name: set(task.get("dependencies", ())) for name, task in tasks.items()}
    assert {name: set(node.predecessors) for name, node in ours().nodes.items()} == edges


def test_both_loop_retry_and_end_alike() -> None:
    (tasks, templates), nodes = argo(), ours().nodes
    assert {name for name, task in tasks.items() if "withParam" in task} == {
        name for name, node in nodes.items() if node.for_each is not None
    }
    there, (tier,) = templates["shrink-picture"], nodes["shrink"].retry
    assert tier.max_retries == there["retryStrategy"]["limit"]
    written = {node["name"]: node for node in next(yaml.safe_load_all(OURS))["spec"]["nodes"]}
    assert written["shrink"]["timeout"] == f"{there['activeDeadlineSeconds']}s"
    assert written["approve"]["waitForEvent"]["timeout"] == templates["approve"]["suspend"]["duration"]
    finally_ = ours().finally_
    assert finally_ is not None
    assert list(finally_.nodes) == [yaml.safe_load(ARGO)["spec"]["onExit"]]


def test_what_the_page_shows_runs(tmp_path: Path, database_url: str) -> None:
    (tmp_path / "album.yaml").write_text(OURS)
    (tmp_path / "album_tasks.py").write_text(TASKS)
    program = str(Path(sys.executable).with_name("partita"))
    command = [program, "dev", "run", "album.yaml", "--tasks", "album_tasks:app", "--event", "approve={}"]
    done = subprocess.run(
        [*command, "--database-url", database_url, "-o", "json"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    (run,) = json.loads(done.stdout[done.stdout.index("[") :])
    assert (done.returncode, run["run"]["phase"]) == (0, "Succeeded"), done.stdout + done.stderr
    assert run["output"] == {"published": 3}
    ended = {node["name"]: node["state"] for node in run["nodes"]}
    assert (ended["approve"], ended["tell"]) == ("Completed", "Completed")
