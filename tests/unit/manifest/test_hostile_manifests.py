"""Manifests made to cost as much as possible are refused, or accepted, for a bounded price.

The price is counted in what is looked at, not in seconds.
"""

from __future__ import annotations

import difflib
from itertools import pairwise
from typing import Any

import pytest

from partita.domain.manifest import limits
from partita.domain.patterns import compile_pattern, pattern_budget
from tests.unit.manifest.build import definition, problems, task


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many names were compared with a mistaken one, in all."""
    count = [0]
    original = difflib.get_close_matches

    def counting(word: str, known: Any, n: int = 3, cutoff: float = 0.6) -> list[str]:
        count[0] += len(known)
        return original(word, known, n, cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    return count


def test_unknown_names_are_looked_up_only_as_often_as_they_are_shown(compared: list[int]) -> None:
    nodes = [task(f"n{n}", dependsOn=[f"m{n}x{m}" for m in range(20)]) for n in range(1000)]
    assert len(problems(*nodes)) == 200
    assert compared[0] <= 50 * 1000


def test_unknown_fields_are_looked_up_only_as_often_as_they_are_shown(compared: list[int]) -> None:
    assert len(problems(task("a", **{f"x{n}": 1 for n in range(5_000)}))) == 200
    assert compared[0] <= 200 * 20


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
