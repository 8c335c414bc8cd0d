"""Definitions of the real parser run as those that tests build by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partita.domain.manifest import definition_from_spec, load_documents
from tests.property.build import definition
from tests.property.world import World

ORDER = Path(__file__).parents[3] / "examples" / "order.yaml"


def _spec() -> dict[str, Any]:
    spec: dict[str, Any] = next(iter(load_documents(ORDER.read_text(encoding="utf-8"))))["spec"]
    return spec


def test_the_parser_and_the_tests_builder_agree_on_edges() -> None:
    spec = _spec()
    parsed, built = definition_from_spec(spec), definition(*spec["nodes"])
    assert parsed.roots == built.roots
    for name, node in parsed.nodes.items():
        other = built.nodes[name]
        assert node.predecessors == other.predecessors, name
        assert set(node.successors) == set(other.successors), name
        assert (node.reads, node.reads_input, node.reads_from) == (other.reads, other.reads_input, other.reads_from), (
            name
        )


def test_the_example_runs_to_its_end() -> None:
    for mode in ("whole", "sliced"):
        world = World(definition_from_spec(_spec()), mode=mode)
        world.start({"sku": "violin", "amount": 1200, "express": True})
        world.complete("charge", {"id": "c1"})
        assert (world.state("courier"), world.state("parcel")) == ("Queued", "Skipped")
        world.complete("courier", {"carrier": "courier", "box": 3})
        world.tick(2)
        world.signal("approval", {"by": "me"})
        assert (world.input("confirm")["charge"], world.input("confirm")["carrier"]) == ("c1", "courier")
        world.complete("confirm", {"number": 42})
        assert (world.status, world.result) == ("Succeeded", {"confirmation": 42, "carrier": "courier"})
