"""Runs of manifests, for tests of what runs after a run's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partita.domain.manifest import definition_from_spec
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import Event
from partita.domain.state.slices import Limits
from tests.property.world import Mode, World


def flow(
    *nodes: dict[str, Any],
    final: Sequence[dict[str, Any]] = (),
    final_timeout: str = "",
    mode: Mode = "whole",
    limits: Limits | None = None,
    start: bool = True,
    **spec: Any,
) -> World:
    """A run of these nodes, with ``final`` as its finally; started with {n: 1}."""
    if final:
        spec["finally"] = {"nodes": list(final)} | ({"timeout": final_timeout} if final_timeout else {})
    definition = definition_from_spec({"nodes": list(nodes), **spec}, name="example")
    world = World(definition, mode=mode, limits=limits)
    if start:
        world.start({"n": 1})
    return world


def task(name: str, **more: Any) -> dict[str, Any]:
    """A task."""
    return {"name": name, "task": {"type": "work"}, **more}


def undoable(name: str, given: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A task with an undo."""
    undo: dict[str, Any] = {"task": {"type": "revert"}}
    if given is not None:
        undo["input"] = given
    return task(name, undo=undo, **more)


def ready(world: World) -> list[str]:
    """Names of the rows that a worker may take."""
    return sorted(key.node for key in world.store.ready)


def names(world: World) -> list[Any]:
    """The events of history, in order."""
    return [line[0] for line in world.events()]


def end(world: World) -> tuple[str, str]:
    """The status and reason of the run."""
    return world.status, world.run.reason


def letter(world: World) -> Event:
    """The message that the run has just left for itself."""
    assert world.last is not None
    (message,) = world.last.messages
    assert message.run_id == world.run.id
    assert not isinstance(message.event, ChildStart)
    return message.event
