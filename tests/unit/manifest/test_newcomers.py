"""What people write who come from somewhere else, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.manifest import definition_from_spec, parse_definition
from tests.unit.manifest.build import manifest, problems, task

SHORT: list[tuple[dict[str, Any], str]] = [
    ({"name": "n", "task": "mail"}, "task: is a text; expected an object, written task: {type: mail}"),
    ({"name": "n", "wait": "5s"}, "wait: is a text; expected an object, written wait: {duration: 5s}"),
    ({"name": "n", "fail": "no"}, 'fail: is a text; expected an object, written fail: {type: "no"}'),
    ({"name": "n", "workflow": "bill"}, "workflow: is a text; expected an object, written workflow: {name: bill}"),
    (
        task("n", forEach="${input.x}"),
        'forEach: is a text; expected an object, written forEach: {items: "${input.x}"}',
    ),
    (task("n", forEach=[1]), "forEach: is a list; expected an object, written forEach: {items: […]}"),
    (task("n", retry={"maxRetries": 1}), "retry: is an object; expected a list of objects, written retry: [{…}]"),
    (
        {"name": "n", "switch": {"next": []}},
        "switch: is an object; expected a list of objects, written switch: [{…}]",
    ),
    (task("n", dependsOn="a"), "dependsOn: is a text; expected a list, written dependsOn: [a]"),
    (task("n", undo={"type": "x"}), "undo.type: type does not exist here; use undo: {task: {type: …}}"),
    (task("n", undo="x"), "undo: is a text; expected an object, written undo: {task: {type: x}}"),
]


@pytest.mark.parametrize(("node", "expected"), SHORT)
def test_what_is_too_short_is_told_as_it_is_written(node: dict[str, Any], expected: str) -> None:
    assert problems(node) == [f"spec.nodes[0].{expected}"]


@pytest.mark.parametrize(("value", "words"), [(False, "n, no and off as false"), (True, "y, yes and on as true")])
def test_a_boolean_where_a_name_belongs_comes_from_yaml(value: bool, words: str) -> None:
    (name,) = problems({"name": value, "task": {"type": "t"}})
    assert name.startswith(f"spec.nodes[0].name: is a boolean, since YAML reads {words} (quote it); expected letters")
    (named,) = [problem for problem in problems(task("a", dependsOn=[value])) if "dependsOn" in problem]
    assert words in named
    _, (head,) = parse_definition({**manifest(), "metadata": {"name": value}})
    assert words in head.message


EXPRESSIONS: list[tuple[str, str]] = [
    ("${steps.x}", "unknown variable 'steps'; expected one of config, from, input, nodes, now, run"),
    ("${}", "${} is empty; expected a value, such as ${input.customer}"),
    ("${config.limt}", "config has no field 'limt' (did you mean 'limit'?); expected one of limit, mail"),
    ("${config['limt']}", "config has no field 'limt' (did you mean 'limit'?); expected one of limit, mail"),
    ("to ${config.mail.form}", "config.mail has no field 'form' (did you mean 'from'?); expected one of from"),
    ("${config.limit.x + 1}", "reads x of config.limit, which is a number; expected an object there"),
    ("${{ input.x }}", "expected ':', found '}'; expressions are written ${…}, with one brace"),
    ("a {{ input.x }}", "'{{ input.x' is a plain text here; expressions are written as ${input.x}"),
    ("{{.nodes.a.output}}", "'{{.nodes.a.output' is a plain text here"),
    ("$(input.x)", "'$(input.x' is a plain text here"),
    ("to $input.x", "'$input.x' is a plain text here"),
]


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS)
def test_expressions_of_elsewhere(text: str, expected: str) -> None:
    (found,) = problems(task("a", input={"x": [text]}), config={"limit": 3, "mail": {"from": "me"}})
    assert found.startswith("spec.nodes[0].input.x[0]: ")
    assert expected in found


@pytest.mark.parametrize(
    "text",
    [
        "${has(config.far) && config.far.x > 1}",
        "${has(config.far.off)}",
        "${get(config, 'far', 1)}",
        "${[{'far': 1}].map(config, config.far)}",
        "${config.limit} and $${config.far}",
        "{{ name }} owes $5, $(date) and $inputs",
        "$$input.x",
    ],
)
def test_what_is_meant_so_is_no_problem(text: str) -> None:
    assert problems(task("a", input={"x": text}), config={"limit": 3}) == []


@pytest.mark.parametrize("spec", [{"output": {"x": "${config.a}"}}, {"defaults": {"retry": [{"when": "${config.a}"}]}}])
def test_constants_are_looked_for_wherever_they_are_read(spec: dict[str, Any]) -> None:
    (found,) = problems(**spec)
    assert found.endswith("config has no field 'a'")


def test_every_field_of_a_node_that_reads_constants_is_looked_at() -> None:
    undo = {"task": {"type": "u"}, "input": {"x": "${config.a}"}}
    found = problems(task("a", when="${config.b}", timeout="${config.c}", undo=undo, repeat={"until": "${config.d}"}))
    assert [line.rsplit(" ", 1)[1] for line in found] == ["'b'", "'c'", "'a'", "'d'"]


def test_undo_and_defaults_do_not_offer_nodes() -> None:
    (found,) = problems(task("a", undo={"task": {"type": "u"}, "input": {"x": "${steps}"}}))
    assert found.endswith("expected one of config, error, input, now, output, run")
    (found,) = problems(defaults={"retry": [{"when": "${steps}"}]})
    assert found.endswith("expected one of config, error, input, now, run")


def test_problems_stand_in_the_order_of_the_document_and_name_their_node() -> None:
    spec = {
        "output": {"x": "${nodes.gone.output}"},
        "subflows": [{"name": "s", "nodes": [task("pick", priority=9)]}],
        "nodes": [task("ship", dependsOn=["gone"], priority=9), {"name": "Bad", "taks": 1}, task("a", dependsOn=["a"])],
        "finally": {"nodes": [task("tell", priority=9)]},
    }
    _, found = parse_definition({**manifest(), "spec": spec})
    assert [(problem.path, problem.message.split(" ")[:2]) for problem in found] == [
        ("spec.output.x", ["names", "node"]),
        ("spec.subflows[0].nodes[0].priority", ["node", "pick:"]),
        ("spec.nodes[0].dependsOn[0]", ["node", "ship:"]),
        ("spec.nodes[0].priority", ["node", "ship:"]),
        ("spec.nodes[1]", ["has", "no"]),
        ("spec.nodes[1].name", ["'Bad'", "does"]),
        ("spec.nodes[1].taks", ["unknown", "field"]),
        ("spec.nodes[2].dependsOn[0]", ["node", "a"]),
        ("spec.finally.nodes[0].priority", ["node", "tell:"]),
    ]


def test_a_definition_with_good_constants_is_read_as_before() -> None:
    spec = {"config": {"limit": 3}, "nodes": [task("a", input={"x": "${config.limit}"})]}
    assert definition_from_spec(spec).nodes["a"].reads == frozenset()
