"""Reads a WorkflowDefinition: every problem at once, or a complete definition.

Invariant: a definition is returned only without problems. The cost is linear in the size of the manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from partita.domain.errors import InvalidError, Problem
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.canonical import content_hash
from partita.domain.manifest.exclusive import exclusive_problems
from partita.domain.manifest.expressions import COMMON, Expressions
from partita.domain.manifest.graph import build_graph, connected, cycle_problems, join_problems, unknown_node
from partita.domain.manifest.nodes import NodeDraft, read_node
from partita.domain.manifest.policies import NodeDefaults, read_defaults
from partita.domain.manifest.reader import Fields, kind_of
from partita.domain.manifest.text import text_problems
from partita.domain.model import Definition
from partita.domain.names import NAMESPACE_NAME, OBJECT, PREFIX
from partita.domain.nearest import hint_budget
from partita.domain.patterns import pattern_budget
from partita.domain.payload import Json
from partita.domain.places import element, member, shortened
from partita.domain.schema import schema_problems

API_VERSION: Final = "partita.dev/v1alpha1"
KIND: Final = "WorkflowDefinition"


def parse_definition(manifest: Mapping[str, Any]) -> tuple[Definition | None, tuple[Problem, ...]]:
    """A definition and no problems, or None and every problem with its path."""
    problems: list[Problem] = [*header_problems(manifest, KIND)]
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    definition: Definition | None = None
    spec = manifest.get("spec")
    if isinstance(spec, dict):
        name, namespace = metadata.get("name"), metadata.get("namespace")
        with pattern_budget():
            definition = _parse_spec(spec, str(name or ""), str(namespace or "default"), problems)
    else:
        problems.append(Problem("spec", f"is {kind_of(spec)}; expected an object with nodes"))
    if problems:
        return None, tuple(problems[: limits.PROBLEMS])
    return definition, ()


def definition_from_spec(spec: Mapping[str, Any], *, name: str = "", namespace: str = "default") -> Definition:
    """The definition of a stored spec. Raises InvalidError with every problem."""
    problems: list[Problem] = []
    definition = _parse_spec(dict(spec), name, namespace, problems)
    if problems or definition is None:
        raise InvalidError(f"WorkflowDefinition {name}", tuple(problems[: limits.PROBLEMS]))
    return definition


def header_problems(manifest: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    """What is wrong with apiVersion, kind and metadata.name."""
    for key, wanted in (("apiVersion", API_VERSION), ("kind", kind)):
        value = manifest.get(key)
        if value is not None and value != wanted:
            yield Problem(key, f"is {shortened(repr(value))}; expected {wanted}")
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    given = {key: named[key] for key in ("name", "generateName", "namespace") if named.get(key) not in (None, "")}
    if "name" not in given and "generateName" not in given:
        yield Problem("metadata.name", "is missing; expected the object's name")
    for key, form in (("name", OBJECT), ("generateName", PREFIX), ("namespace", NAMESPACE_NAME)):
        value = given.get(key, "")
        if not isinstance(value, str):
            yield Problem(f"metadata.{key}", f"is {kind_of(value)}; expected {form.expected}, as a text")
        elif value and (problem := form.problem(value)):
            yield Problem(f"metadata.{key}", problem)


def _parse_spec(spec: dict[str, Json], name: str, namespace: str, problems: list[Problem]) -> Definition | None:
    broken = text_problems(spec, "spec", limits.SPEC_BYTES)
    if broken:
        problems.extend(broken)
        return None
    with hint_budget():
        return _parse_checked(spec, name, namespace, problems)


def _parse_checked(spec: dict[str, Json], name: str, namespace: str, problems: list[Problem]) -> Definition | None:
    before = len(problems)
    fields = Fields(spec, "spec", shapes.SPEC, problems)
    output = Expressions(COMMON, problems)
    defaults = _defaults(fields, problems)
    drafts = _read_nodes(fields, defaults, problems)
    head = _head(fields, output)
    _check_config(fields)
    _check_output(output, drafts, problems)
    graph = build_graph(drafts, problems)
    cycles = [*cycle_problems(graph)]
    problems.extend(cycles)
    problems.extend(join_problems(drafts, graph))
    if not cycles:
        problems.extend(exclusive_problems(drafts, graph))
    if len(problems) > before:
        return None
    nodes = connected(drafts, graph)
    definition = Definition(
        name=name,
        namespace=namespace,
        nodes=nodes,
        roots=tuple(node.name for node in nodes.values() if not node.predecessors),
        output_reads=output.refs.nodes,
        **head,
    )
    return replace(definition, content_hash=content_hash(definition, {d.name: d.depends for d in drafts.values()}))


def _defaults(fields: Fields, problems: list[Problem]) -> NodeDefaults:
    expressions = Expressions(COMMON, problems)
    defaults = read_defaults(fields, expressions)
    for path, refs in expressions.places:
        if refs.nodes:
            message = f"names node {refs.order[0]!r}; defaults must not name nodes, since every task would depend on it"
            problems.append(Problem(path, message))
    return defaults


def _head(fields: Fields, output: Expressions) -> dict[str, Any]:
    fail_fast = fields.flag("failFast")
    schema = fields.object("inputSchema")
    if schema is not None:
        fields.problems.extend(schema_problems(schema, fields.at("inputSchema")))
    return {
        "description": fields.text("description", "a text", longest=limits.DESCRIPTION, shortest=0) or "",
        "input_schema": schema,
        "config": fields.object("config") or {},
        "timeout_ms": fields.duration("timeout"),
        "fail_fast": True if fail_fast is None else fail_fast,
        "output": output.object(fields, "output"),
    }


def _read_nodes(fields: Fields, defaults: NodeDefaults, problems: list[Problem]) -> dict[str, NodeDraft]:
    fields.need("nodes", "a list of 1 to 1,000 nodes")
    drafts: dict[str, NodeDraft] = {}
    for node in fields.each("nodes", shapes.NODE, limits.NODES, least=1):
        draft = read_node(node, defaults, problems)
        if draft is None:
            continue
        if draft.name in drafts:
            node.problem("name", f"{draft.name!r} is the name of {drafts[draft.name].path} already; expected another")
        else:
            drafts[draft.name] = draft
    return drafts


def _check_config(fields: Fields) -> None:
    pending: list[tuple[str, Json]] = [("config", fields.raw("config"))]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str) and "${" in value:
            fields.problem(path, "config holds constants; expressions are not evaluated here")
        elif isinstance(value, dict):
            pending.extend((member(path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            pending.extend((element(path, index), item) for index, item in enumerate(value))


def _check_output(output: Expressions, drafts: Mapping[str, NodeDraft], problems: list[Problem]) -> None:
    for path, refs in output.places:
        for name in refs.order:
            if name not in drafts and len(problems) < limits.PROBLEMS:
                problems.append(unknown_node(path, name, drafts))
