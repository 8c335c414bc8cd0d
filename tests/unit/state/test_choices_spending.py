"""Conditions that are looked at one after the other share the budget of one field: many cost no more than one."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.state.rows import ErrorInfo
from tests.property.build import definition
from tests.property.world import World

COSTLY = "${input.list.map(a, input.list.map(b, a)).size() < 0}"
"""Takes more than a third of what one field may, and less than half."""
LIST = list(range(240))


def costly(count: int, **more: Any) -> list[dict[str, Any]]:
    """So many entries whose condition is costly and false."""
    return [{"when": COSTLY, "next": [], **more} for _ in range(count)]


def _error(world: World) -> str:
    error = world.row("a").error
    assert isinstance(error, ErrorInfo)
    return f"{error.type}: {error.message}"


def test_two_cases_fit_and_the_third_finds_the_budget_spent() -> None:
    fits = World(definition({"name": "a", "switch": [*costly(2), {"next": []}]}))
    fits.start({"list": LIST})
    assert fits.status == "Succeeded"
    world = World(definition({"name": "a", "switch": [*costly(3), {"next": []}]}))
    world.start({"list": LIST})
    assert world.status == "Failed"
    assert _error(world).startswith("expression: ")
    assert "needs more than 150,000 steps" in _error(world)


@pytest.mark.parametrize(("field", "entry"), [("onError", {}), ("retry", {"maxRetries": 1})])
def test_routes_and_tiers_share_one_budget(field: str, entry: dict[str, Any]) -> None:
    entries = [{"when": COSTLY, **({"next": []} if field == "onError" else entry)} for _ in range(3)]
    world = World(definition({"name": "a", field: entries}))
    world.start({"list": LIST})
    world.fail("a", "boom")
    assert world.status == "Failed"
    assert "needs more than 150,000 steps" in _error(world)
