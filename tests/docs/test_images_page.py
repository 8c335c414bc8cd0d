"""docs/images.md shows the files of examples/worker-image, which e2e/test_worker_image.py builds and runs."""

from __future__ import annotations

import re

import yaml

from partita.cli.checks import check_file
from tests.docs.blocks import ROOT, blocks

EXAMPLE = ROOT / "examples" / "worker-image"
SHOWN = blocks(ROOT / "docs" / "images.md")


def uncommented(text: str) -> str:
    """A file without the comment that it begins with."""
    return re.sub(r"\A(#.*\n)+", "", text)


def test_the_dockerfile_is_the_example_s() -> None:
    (shown,) = (block.text for block in SHOWN if block.language == "dockerfile")
    assert shown == uncommented((EXAMPLE / "Dockerfile").read_text("utf-8"))


def test_the_values_are_the_example_s() -> None:
    shown = next(yaml.safe_load(block.text) for block in SHOWN if block.language == "yaml")
    assert shown == yaml.safe_load((EXAMPLE / "values.yaml").read_text("utf-8"))


def test_its_manifest_is_good() -> None:
    findings = check_file(EXAMPLE / "parcel.yaml")
    assert [finding.kind for finding in findings] == ["WorkflowDefinition", "WorkflowRun"]
    assert [str(problem) for finding in findings for problem in finding.problems] == []
