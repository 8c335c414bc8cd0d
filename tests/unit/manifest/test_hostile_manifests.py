"""Manifests made to cost as much as possible are refused, or accepted, for a bounded price.

The price is counted in what is looked at, not in seconds.
"""

from __future__ import annotations

import difflib
from itertools import pairwise
from typing import Any

import pytest

from partita.domain.errors import InvalidError, NotFoundError, Problem
from partita.domain.expressions import ExpressionError, compile_condition
from partita.domain.expressions.paths import MOST_COMPARED
from partita.domain.manifest import exclusive, limits
from partita.domain.nearest import LONGEST, TOGETHER
from partita.domain.patterns import compile_pattern, pattern_budget
from partita.domain.places import element, member
from tests.unit.manifest.build import definition, problems, task


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters of names were compared with a mistaken one, in all, and how often."""
    count = [0, 0]
    original = difflib.get_close_matches

    def counting(word: str, known: Any, n: int = 3, cutoff: float = 0.6) -> list[str]:
        count[0] += sum(len(name) + len(word) for name in known)
        count[1] += 1
        return original(word, known, n, cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    return count


def test_looking_for_similar_names_is_bounded_for_a_whole_definition(compared: list[int]) -> None:
    long = "n" * 58
    nodes = [task(f"{long}{n}", dependsOn=[f"{long}{n}x{m}" for m in range(3)]) for n in range(1_000)]
    fields = {f"{long}{n}": 1 for n in range(1_000)}
    values = {f"k{n}": f"${{unknown{n}(input)}}" for n in range(2_000)} | {"v": "${inpt.x}"}
    nodes[0] |= {"input": values, **fields}
    found = problems(*nodes, output={f"k{n}": f"${{nodes.{long}{n}y}}" for n in range(1_000)})
    assert len(found) == 200
    assert 0 < compared[0] <= TOGETHER


def test_the_first_mistakes_come_with_a_similar_name(compared: list[int]) -> None:
    nodes = [task(f"chargeCard{n}", dependsOn=[f"chargeCrad{n}"]) for n in range(1_000)]
    assert "did you mean 'chargeCard0'?" in problems(*nodes)[0]
    assert "did you mean" not in problems(*nodes)[-1]
    assert compared[0] <= 2 * TOGETHER


def test_a_loop_that_misses_a_field_a_thousand_times_looks_for_a_similar_name_once(compared: list[int]) -> None:
    items = [{f"field{m}": m for m in range(1_000)} for _ in range(1_000)]
    condition = compile_condition("${input.exists(e, e.fieldd == 1)}")
    with pytest.raises(ExpressionError, match="has no field 'fieldd'"):
        condition.test({"input": items})
    assert compared[1] == 1
    assert compared[0] <= MOST_COMPARED * 2 * LONGEST


def test_a_long_name_is_not_repeated_for_each_value_below_it() -> None:
    key = "k" * 200_000
    below = {f"v{n}": "${input.x}" for n in range(1_000)}
    found = definition(task("a", input={key: below}), config={"c": {key: {f"v{n}": 1 for n in range(1_000)}}})
    assert found.nodes["a"].reads_input
    bad = {key: {f"v{n}": "${nodes.b.output}" for n in range(1_000)}, "w": {key: {key: "${"}}}
    for line in problems(task("a", input=bad), config={key: {"x": "${y}"}}, **{key: 1}):
        assert len(line) < 2_500
    for line in problems(task("a", input={key: {key: "\0", "x": [key + "\0"]}})):
        assert len(line) < 1_000


def test_a_path_stops_growing() -> None:
    path = ""
    for depth in range(100):
        path = element(member(path, "name"), depth)
    assert len(path) < 300
    assert path.startswith("name[0].name[1].")
    assert path.endswith("…")


def test_errors_are_short_whatever_they_are_about() -> None:
    long = "x" * 200_000
    assert len(str(NotFoundError(f"run {long}: does not exist", hint=f"partita get {long}"))) < 2_500
    assert len(str(InvalidError(long, (Problem(long, long),), hint=long))) < 3_500


def test_the_lists_of_a_choosing_node_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{n}" for n in range(900)]
    cases = [{"when": "${input.x}", "next": names[n * 14 : n * 14 + 14]} for n in range(64)]
    read = [0]
    chosen = exclusive._chosen

    def counting(node: Any) -> Any:
        read[0] += 1
        return chosen(node)

    monkeypatch.setattr(exclusive, "_chosen", counting)
    definition({"name": "s", "switch": cases}, *[task(name, dependsOn=["s"]) for name in names])
    assert read == [901]


def test_a_dead_join_over_hundreds_of_branches_names_ten() -> None:
    names = [f"n{n}" for n in range(64)]
    cases = [{"when": "${input.x}", "next": [name]} for name in names]
    (found,) = problems({"name": "s", "switch": cases}, *map(task, names), task("j", dependsOn=names))
    assert "n9, 54 more; use join: merge" in found


def test_patterns_of_one_definition_are_bounded_together() -> None:
    schemas = [{"pattern": rf"^\w{{90}}-{n}$"} for n in range(40)]
    nodes = [{"name": f"n{n}", "waitForEvent": {"schema": schema}} for n, schema in enumerate(schemas)]
    found = problems(*nodes)
    assert found
    assert all(
        line.endswith("makes the patterns of this definition too large together; expected fewer or shorter ones")
        for line in found
    )


def test_the_budget_of_patterns_ends_with_the_definition() -> None:
    with pattern_budget(3):
        assert compile_pattern("abc").occurs_in("abc")
        with pytest.raises(ValueError, match="too large together"):
            compile_pattern("abc")
    assert compile_pattern("abc").occurs_in("abc")


def test_the_search_for_dead_joins_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    branches = [{"when": "${input.x}", "next": ["a"]}, {"next": ["b"]}]
    nodes = [
        {"name": "s", "switch": branches},
        task("a"),
        task("b"),
        task("j", dependsOn=["a", "b"]),
    ]
    assert len(problems(*nodes)) == 1
    monkeypatch.setattr(limits, "EXCLUSIVITY_WORK", 3)
    assert problems(*nodes) == []


def test_a_wide_and_deep_graph_is_read() -> None:
    layers = [[f"l{layer}n{n}" for n in range(30)] for layer in range(30)]
    nodes = [task(name) for name in layers[0]]
    for above, layer in pairwise(layers):
        nodes += [task(name, dependsOn=above) for name in layer]
    found = definition(*nodes)
    assert len(found.nodes) == 900
    assert len(found.roots) == 30


def test_a_chain_of_a_thousand_nodes_is_read() -> None:
    nodes = [task(f"n{n}", input={"x": f"${{nodes.n{n - 1}.output}}"} if n else {}) for n in range(1000)]
    assert len(definition(*nodes).nodes) == 1000
    nodes[0]["dependsOn"] = ["n999"]
    (found,) = problems(*nodes)
    assert found == (
        "spec.nodes[0].dependsOn[0]: closes a cycle: n0 → n1 → n2 → n3 → n4 → n5 → n6 → n7 → n8 → n9 → (981 more) → "
        "n991 → n992 → n993 → n994 → n995 → n996 → n997 → n998 → n999 → n0; expected edges that lead one way"
    )
