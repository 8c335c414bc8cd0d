"""Values that the documents show render, and those that they name exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, TRIAL, Helm
from tests.docs.blocks import DOCUMENTS, Block, blocks

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
NAMED = re.compile(r"`(?:--set )?((?:[a-z][A-Za-z]*)(?:\.[A-Za-z]+)+)(?:=[^`]*)?`")
PAGES = [path for path in DOCUMENTS if path.exists() and path.parent.name != "decisions"]
FILES = (".md", ".py", ".yaml", ".sql")


def shown() -> list[Block]:
    """Blocks of values: those whose keys are values of the chart."""
    found = []
    for block in (block for block in blocks() if block.language == "yaml"):
        keys = {key for document in yaml.safe_load_all(block.text) if isinstance(document, dict) for key in document}
        if keys and keys <= SCHEMA["properties"].keys():
            found.append(block)
    return found


@pytest.mark.parametrize("block", shown(), ids=str)
def test_what_is_shown_renders(helm: Helm, block: Block, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(block.text)
    assert helm.template(*TRIAL, "-f", str(values))


def test_several_documents_show_values() -> None:
    assert {"install.md", "images.md"} <= {block.document.name for block in shown()}


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.name))
def test_what_is_named_exists(document: Path) -> None:
    """A name with dots that begins like a value of the chart is one."""
    named = {name for name in NAMED.findall(document.read_text("utf-8")) if not name.endswith(FILES)}
    missing = {name for name in named if name.split(".")[0] in SCHEMA["properties"] and not exists(name.split("."))}
    assert missing == set()


def exists(path: list[str]) -> bool:
    """Whether the schema has a value of this path; below a map of objects the first word is anybody's."""
    schema = SCHEMA
    for word in path:
        if "$ref" in schema:
            schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
        others = schema.get("additionalProperties")
        if word in schema.get("properties", {}):
            schema = schema["properties"][word]
        elif isinstance(others, dict):
            schema = others
        else:
            return not schema.get("properties") and schema.get("type") == "object"
    return True


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("database.tls.mode", True),
        ("database.tls.modus", False),
        ("workers.shop.queues", True),
        ("workers.shop.quues", False),
        ("settings.engine.batchSize", True),
        ("commonLabels.team", True),
        ("networkPolicy.enabled.really", False),
    ],
)
def test_the_check_of_names_itself(name: str, right: bool) -> None:
    assert exists(name.split(".")) is right
