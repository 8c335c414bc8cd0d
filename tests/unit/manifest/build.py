"""Short ways to write manifests in tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from partita.domain.manifest import parse_definition
from partita.domain.model import Definition

_NAMED = re.compile(r": node \w+: ")


def task(name: str, **fields: Any) -> dict[str, Any]:
    """A task node."""
    return {"name": name, "task": {"type": "t"}, **fields}


def manifest(*nodes: Any, **spec: Any) -> dict[str, Any]:
    """A definition of these nodes (or of one task)."""
    return {
        "apiVersion": "partita.dev/v1alpha1",
        "kind": "WorkflowDefinition",
        "metadata": {"name": "test"},
        "spec": {"nodes": list(nodes) or [task("a")], **spec},
    }


def definition(*nodes: Any, **spec: Any) -> Definition:
    """The parsed definition, which must have no problems."""
    found, problems = parse_definition(manifest(*nodes, **spec))
    assert found is not None, [str(problem) for problem in problems]
    return found


def problems(*nodes: Any, **spec: Any) -> list[str]:
    """Every problem as ``path: message``, without the names of nodes before the messages."""
    found, listed = parse_definition(manifest(*nodes, **spec))
    assert (found is None) == bool(listed)
    return [_NAMED.sub(": ", str(problem), count=1) for problem in listed]


def cases(name: str, key: str) -> list[tuple[Any, list[str]]]:
    """The table of a file in ``cases``: inputs with the problems that they give."""
    text = (Path(__file__).parent / "cases" / f"{name}.yaml").read_text(encoding="utf-8")
    return [(case[key], case["problems"]) for case in yaml.safe_load(text)]
