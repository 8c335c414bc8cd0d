"""Each line of the table of the state machine is true, and the documentation shows the same table."""

from __future__ import annotations

import pytest

from partita.domain.state.rows import GROUP, NodeKey, NodeState, RunStatus
from tests.property.world import Mode, World
from tests.unit.state import render
from tests.unit.state.steps import effects_of
from tests.unit.state.table import NODE_LINES, RUN_LINES, Line

LINES = [pytest.param(line, id=line.title) for line in (*NODE_LINES, *RUN_LINES)]


def _state(world: World, subject: str) -> str:
    if world.store.run is None:
        return "-"
    if not subject:
        return world.status
    row = world.store.tasks.get(NodeKey(subject, GROUP)) or world.store.tasks.get(NodeKey(subject))
    return row.state.value if row is not None else "-"


@pytest.mark.parametrize("mode", ["whole", "sliced"])
@pytest.mark.parametrize("line", LINES)
def test_line(line: Line, mode: Mode) -> None:
    world = World(line.given, mode=mode)
    for step in line.arrange:
        step(world)
    assert _state(world, line.subject) == line.before
    line.act(world)
    assert world.last is not None
    assert _state(world, line.subject) == line.after
    assert effects_of(world.last) == set(line.effects)


def test_every_state_is_in_the_table() -> None:
    nodes = {line.after for line in NODE_LINES}
    runs = {line.after for line in RUN_LINES}
    assert nodes == {state.value for state in NodeState}
    assert runs == {status.value for status in RunStatus}


def test_no_line_is_there_twice() -> None:
    titles = [line.title for line in (*NODE_LINES, *RUN_LINES)]
    assert len(titles) == len(set(titles))


def test_the_documentation_shows_the_table() -> None:
    shown = render.DOCUMENT.read_text(encoding="utf-8")
    assert shown == render.document(), "docs/state-machine.md is old; try: python -m tests.unit.state.render"
