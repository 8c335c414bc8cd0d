"""Reads a WorkflowDefinition: every problem at once, or a complete definition.

Invariant: a new definition is returned only without problems; one that is stored was without them under the rules of
its day, so that it fails only on what cannot be executed. The cost is linear in the size of the manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from partita.domain.errors import InvalidError, Problem
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.canonical import content_hash
from partita.domain.manifest.exclusive import Work
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.flow import FlowDraft, check_flow, read_flow
from partita.domain.manifest.policies import NodeDefaults, read_defaults
from partita.domain.manifest.reader import Fields
from partita.domain.manifest.reported import reported
from partita.domain.manifest.shorthands import kind_for_text
from partita.domain.manifest.text import text_problems
from partita.domain.manifest.variables import WITHOUT_NODES
from partita.domain.model import Definition
from partita.domain.names import NAMESPACE_NAME, OBJECT, PREFIX
from partita.domain.nearest import hint_budget
from partita.domain.patterns import pattern_budget
from partita.domain.payload import Json, kind_of
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
        return None, reported(problems, manifest)
    return definition, ()


def definition_from_spec(spec: Mapping[str, Any], *, name: str = "", namespace: str = "default") -> Definition:
    """The definition of a stored spec, which runs may be pinned to: what is only linted does not matter any more.

    Raises InvalidError with every problem that keeps it from being executed.
    """
    problems = _Unexecutable()
    definition = _parse_spec(dict(spec), name, namespace, problems)
    if problems or definition is None:
        raise InvalidError(f"WorkflowDefinition {name}", reported(problems, {"spec": spec}))
    return definition


class _Unexecutable(list[Problem]):
    """Problems without those that are only linted, however many there are."""

    def append(self, problem: Problem) -> None:
        if not problem.lint:
            super().append(problem)

    def extend(self, problems: Iterable[Problem]) -> None:
        super().extend(problem for problem in problems if not problem.lint)


def header_problems(manifest: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    """What is wrong with apiVersion, kind and metadata.name."""
    for key, wanted in (("apiVersion", API_VERSION), ("kind", kind)):
        value = manifest.get(key)
        if value is not None and value != wanted:
            yield Problem(key, f"is {shortened(repr(value))}; expected {wanted}")
        elif value is None and key == "apiVersion" and manifest.get("kind") is not None:
            yield Problem(key, f"is missing; expected {wanted}")
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    given = {key: named[key] for key in ("name", "generateName", "namespace") if named.get(key) not in (None, "")}
    if "name" not in given and "generateName" not in given:
        yield Problem("metadata.name", "is missing; expected the object's name")
    for key, form in (("name", OBJECT), ("generateName", PREFIX), ("namespace", NAMESPACE_NAME)):
        value = given.get(key, "")
        if not isinstance(value, str):
            yield Problem(f"metadata.{key}", f"is {kind_for_text(value)}; expected {form.expected}, as a text")
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
    defaults = _defaults(fields, problems)
    head = _head(fields)
    main = read_flow(fields, "", defaults, problems)
    subflows = _subflows(fields, defaults, problems)
    flows = (main, *subflows)
    if not _few_enough(spec, problems):
        return None
    names, work = tuple(flow.names for flow in flows), Work()
    for flow in flows:
        check_flow(flow, {flow.subflow: flow for flow in subflows}, names, problems, work)
    if len(problems) > before:
        return None
    return _complete({"name": name, "namespace": namespace, "config": head["config"]}, head, main, subflows)


def _complete(shared: dict[str, Any], head: dict[str, Any], main: FlowDraft, subflows: list[FlowDraft]) -> Definition:
    """The definition; its subflows are definitions with the same name, constants and hash."""
    inner = {flow.subflow: Definition(**shared, **flow.parts()) for flow in subflows}
    whole = Definition(**{**shared, **head, **main.parts()}, subflows=inner)
    depends = {key: names for flow in (main, *subflows) for key, names in flow.depends().items()}
    digest = content_hash(whole, depends)
    found: dict[str, Definition] = {}
    found |= {name: replace(flow, subflows=found, content_hash=digest) for name, flow in inner.items()}
    return replace(whole, subflows=found, content_hash=digest)


def _subflows(fields: Fields, defaults: NodeDefaults, problems: list[Problem]) -> list[FlowDraft]:
    """Every subflow, those with a bad name too, so that their nodes are checked; none after the most nodes."""
    found: list[FlowDraft] = []
    paths: dict[str, str] = {}
    nodes = 0
    for subflow in fields.each("subflows", shapes.SUBFLOW, limits.SUBFLOWS):
        subflow.need("name", "a name such as packLine")
        name = subflow.identifier("name")
        if name in paths:
            subflow.problem("name", f"{name!r} is the name of {paths[name]} already; expected another")
        elif name is not None:
            paths[name] = subflow.path
        if nodes <= limits.NODES:
            flow = read_flow(subflow, name or shortened(str(subflow.raw("name"))), defaults, problems)
            nodes += len(flow.drafts)
            found.append(flow)
    return found


def _few_enough(spec: Mapping[str, Json], problems: list[Problem]) -> bool:
    """Whether the nodes of all flows together are few enough to look at their edges."""
    subflows = spec.get("subflows")
    flows = [spec, *(subflows if isinstance(subflows, list) else ())]
    lists = [flow.get("nodes") for flow in flows if isinstance(flow, dict)]
    total = sum(len(nodes) for nodes in lists if isinstance(nodes, list))
    if total > limits.NODES and len(lists) > 1:
        message = f"make {total:,} nodes with those of spec.nodes; expected at most {limits.NODES:,} in all"
        problems.append(Problem("spec.subflows", message))
    return total <= limits.NODES


def _defaults(fields: Fields, problems: list[Problem]) -> NodeDefaults:
    given = fields.raw("config")
    config: Json = {} if given is None else given
    expressions = Expressions(WITHOUT_NODES, problems, config if isinstance(config, dict) else None)
    defaults = replace(read_defaults(fields, expressions), config=config if isinstance(config, dict) else None)
    for path, refs in expressions.places:
        if refs.nodes:
            message = f"names node {refs.order[0]!r}; defaults must not name nodes, since every task would depend on it"
            problems.append(Problem(path, message))
    return defaults


def _head(fields: Fields) -> dict[str, Any]:
    schema = fields.object("inputSchema")
    if schema is not None:
        fields.problems.extend(schema_problems(schema, fields.at("inputSchema")))
    _check_config(fields)
    _check_retention(fields)
    return {
        "description": fields.text("description", "a text", longest=limits.DESCRIPTION, shortest=0) or "",
        "input_schema": schema,
        "config": fields.object("config") or {},
    }


def _check_retention(fields: Fields) -> None:
    """It is about objects of a cluster, which obeys it as it stands there: no part of what runs execute."""
    retention = fields.fields("retention", shapes.RETENTION)
    if retention is not None:
        retention.integer("ttlSecondsAfterFinished", 0, limits.TTL_SECONDS)
        retention.integer("maxFinishedRuns", 0, limits.FINISHED_RUNS)


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
