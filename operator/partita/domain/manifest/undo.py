"""Reads undo."""

from __future__ import annotations

from partita.domain.errors import Problem
from partita.domain.expressions import Template
from partita.domain.manifest import shapes
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.policies import NodeDefaults, read_task
from partita.domain.manifest.reader import Fields
from partita.domain.manifest.variables import IN_UNDO
from partita.domain.model import Undo


def read_undo(node: Fields, defaults: NodeDefaults, problems: list[Problem]) -> Undo | None:
    """``undo``. Its expressions make no edges: it sees the node that it reverses and no other."""
    fields = node.fields("undo", shapes.UNDO)
    if fields is None:
        return None
    if not fields.has("type"):
        fields.need("task", "the task that reverses the node, such as {type: refund}")
    task = read_task(fields, defaults)
    given = _input(fields, defaults, problems)
    return None if task is None else Undo(task, given, defaults.timeout_ms, defaults.retry)


def _input(fields: Fields, defaults: NodeDefaults, problems: list[Problem]) -> Template | None:
    expressions = Expressions(IN_UNDO, problems, defaults.config)
    template = expressions.object(fields, "input")
    for path, refs in expressions.places:
        if refs.nodes:
            name = refs.order[0]
            message = f"names node {name!r}; undo sees only its own node: expected input, output or error of that"
            problems.append(Problem(path, message))
    return template
