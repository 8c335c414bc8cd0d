"""values.yaml: every default with its meaning as a comment above it.

Invariant: what is written reads back as the tree's defaults.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import yaml

from chart_values.nodes import Node, Unset

WIDTH: Final = 116
HEAD: Final = """\
# Default values of the chart partita. To try it out:
#   helm install partita charts/partita --set postgresql.embedded.enabled=true
# Everything else needs a database: database.existingSecret.name or database.url.
# (scripts/chart_files.py writes this file from scripts/chart_values.)
"""


def values_yaml(root: Node) -> str:
    """The file's text."""
    return "\n".join([HEAD, *_group(root, 0)])


def _group(node: Node, depth: int) -> Iterator[str]:
    for key, child in (node.children or {}).items():
        default = child.values()
        if isinstance(default, Unset):
            continue
        indent = "  " * depth
        for line in textwrap.wrap(child.description, WIDTH - len(indent) - 2):
            yield f"{indent}# {line}"
        if child.children is not None and default:
            yield f"{indent}{key}:"
            yield from _group(child, depth + 1)
        else:
            yield from _leaf(key, default, indent)
        if depth == 0:
            yield ""


def _leaf(key: str, default: Any, indent: str) -> Iterator[str]:
    if not default and default is not False and default != 0:
        yield f"{indent}{key}: {json.dumps(default)}"
        return
    for line in yaml.safe_dump({key: default}, sort_keys=False, width=WIDTH).splitlines():
        yield indent + line
