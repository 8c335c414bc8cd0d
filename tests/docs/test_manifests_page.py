"""docs/manifests.md says what the code accepts, and its examples are good, as are those in examples/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from partita.cli.checks import check_file
from partita.domain.manifest import parse_definition
from partita.domain.manifest.kinds import KINDS
from tests.docs.blocks import Block, blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "manifests.md"
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SHOWN = [block for block in blocks(PAGE) if block.language == "yaml"]


def test_the_tables_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "manifests_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def _specs(block: Block) -> list[dict[str, Any]]:
    """The specs of the definitions in a block; a list of nodes alone is a definition's."""
    found: list[dict[str, Any]] = []
    for document in yaml.safe_load_all(block.text):
        if isinstance(document, list):
            found.append({"nodes": document})
        elif document["kind"] == "WorkflowDefinition":
            found.append(document["spec"])
    return found


def _flows(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of all flows of a spec."""
    flows = [spec, *spec.get("subflows", [])]
    lists = [flow["nodes"] for flow in flows] + [flow["finally"]["nodes"] for flow in flows if "finally" in flow]
    return [node for nodes in lists for node in nodes]


@pytest.mark.parametrize("block", SHOWN, ids=str)
def test_what_the_page_shows_is_good(block: Block) -> None:
    for spec in _specs(block):
        _, problems = parse_definition({"metadata": {"name": "shown"}, "spec": spec})
        assert [str(problem) for problem in problems] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.name))
def test_the_examples_are_good(path: Path) -> None:
    findings = check_file(path)
    assert {finding.kind for finding in findings} == {"WorkflowDefinition", "WorkflowRun"}
    assert [str(problem) for finding in findings for problem in finding.problems] == []


def test_the_page_shows_every_kind_and_the_reference_example_has_all() -> None:
    shown = {key for block in SHOWN for spec in _specs(block) for node in _flows(spec) for key in node}
    kinds = {kind.value for kind in KINDS}
    loops = {"forEach", "repeat", "undo", "onError", "join", "cancelRemaining", "when", "retry"}
    assert (kinds | loops) - shown == {"switch", "wait"}  # these two are in examples/order.yaml
    reference = yaml.safe_load(
        (ROOT / "examples" / "order-fulfilment.yaml").read_text(encoding="utf-8").split("---")[0]
    )
    used = {key for node in _flows(reference["spec"]) for key in node}
    assert (kinds | loops) - used == {"succeed"}
    assert {"subflows", "finally", "defaults", "config", "inputSchema", "output", "timeout"} <= set(reference["spec"])
