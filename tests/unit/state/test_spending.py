"""A decision that has spent enough leaves the rest to a transaction of its own, which changes nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.manifest import definition_from_spec
from partita.domain.state.events import ParkedReleased
from tests.property.build import definition
from tests.property.world import Mode
from tests.unit.state.looping import MODES, Looping

both = pytest.mark.parametrize("mode", MODES)


def chain(count: int) -> list[dict[str, Any]]:
    """Computes that each read the one before."""
    first = {"name": "c0", "compute": {"v": "${input.v}"}}
    rest = [{"name": f"c{n}", "compute": {"v": f"${{nodes.c{n - 1}.output.v + 1}}"}} for n in range(1, count)]
    return [first, *rest][:count]


@both
def test_a_chain_of_computes_goes_on_one_by_one(mode: Mode) -> None:
    world = Looping(definition(*chain(5), output="${nodes.c4.output.v}"), mode, visits=1)
    world.start({"v": 1})
    assert (world.state("c0"), world.state("c1"), world.state("c2")) == ("Completed", "Pending", "")
    assert world.letters == [ParkedReleased(nodes=("c1",))]
    assert world.go_on() == 4
    assert (world.status, world.result) == ("Succeeded", 5)


def test_a_usual_run_does_not_notice() -> None:
    world = Looping(definition(*chain(5), output="${nodes.c4.output.v}"))
    world.start({"v": 1})
    assert (world.status, world.result, world.letters) == ("Succeeded", 5, [])


@both
def test_what_was_parked_starts_in_its_order(mode: Mode) -> None:
    first = {"name": "b", "compute": {"v": "${input.v}"}}
    fails = {"name": "x", "dependsOn": ["b"], "compute": {"v": "${input.none}"}}
    world = Looping(
        definition(
            {"name": "y", "dependsOn": ["x2"], "compute": 1},
            first,
            fails,
            {"name": "x2", "dependsOn": ["b"], "compute": {"v": "${input.v}"}},
        ),
        mode,
        visits=1,
    )
    world.start({"v": 1})
    assert world.letters == [ParkedReleased(nodes=("x", "x2"))]
    world.go_on()
    assert (world.status, world.state("x"), world.state("x2"), world.state("y")) == (
        "Failed",
        "Failed",
        "Cancelled",
        "",
    )


@both
def test_a_run_that_is_suspended_meanwhile_goes_on_when_it_is_resumed(mode: Mode) -> None:
    world = Looping(definition(*chain(4)), mode, visits=1)
    world.start({"v": 1})
    world.suspend()
    world.go_on()
    assert (world.state("c1"), world.status) == ("Pending", "Suspended")
    world.resume()
    assert world.state("c1") == "Completed"
    world.go_on()
    assert world.status == "Succeeded"


@both
def test_a_run_that_is_cancelled_meanwhile_starts_nothing(mode: Mode) -> None:
    world = Looping(definition(*chain(4)), mode, visits=1)
    world.start({"v": 1})
    world.cancel()
    assert world.go_on() == 1
    assert (world.status, world.state("c1")) == ("Cancelled", "Cancelled")


@both
def test_what_is_parked_in_finally_is_waited_for(mode: Mode) -> None:
    final = [{"name": f"f{n}", "compute": {"v": "${input.v}"}} for n in range(3)]
    made = definition_from_spec({"nodes": chain(1), "finally": {"nodes": final}}, name="example")
    world = Looping(made, mode, visits=1)
    world.start({"v": 1})
    assert (world.status, world.state("f2")) == ("Running", "Pending")
    world.go_on()
    assert (world.status, world.state("f0"), world.state("f2")) == ("Succeeded", "Completed", "Completed")
