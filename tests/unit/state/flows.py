"""Runs of manifests, for tests of what runs after a run's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partita.domain.manifest import definition_from_spec
from partita.domain.state.effects import Limits
from partita.domain.state.rows import NodeKey
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


def index_of(world: World, node: str, index: int) -> NodeKey:
    """The key of an item's row."""
    assert NodeKey(node, index) in world.store.tasks
    return NodeKey(node, index)
