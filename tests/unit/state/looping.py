"""A world whose events are about items and iterations: the loop is the node ``a``, the task ``z`` follows it."""

from __future__ import annotations

from typing import Any

from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state.events import Event, Reply, TaskCompleted, TaskFailed
from partita.domain.state.rows import GROUP, ErrorInfo, Loop, NodeKey, TaskRow
from partita.domain.state.slices import Limits
from tests.property.build import definition
from tests.property.world import Mode, World

MODES: tuple[Mode, ...] = ("whole", "sliced")


def loop(*more: dict[str, Any], output: Any = "${nodes.a.output}", **fields: Any) -> Definition:
    """The loop ``a``, the task ``z`` after it, and more nodes."""
    return definition({"name": "a", **fields}, {"name": "z", "dependsOn": ["a"]}, *more, output=output)


class Looping(World):
    """One run with a loop ``a``; messages that the run leaves itself are delivered when ``go_on`` is called."""

    def __init__(self, made: Definition, mode: Mode = "whole", **limits: int) -> None:
        super().__init__(made, mode=mode, limits=Limits(**limits))

    @property
    def letters(self) -> list[Event]:
        """What the run has left itself."""
        return self.store.left

    def go_on(self) -> int:
        """Deliver what the run has left itself; how many messages that were."""
        count = 0
        while self.letters:
            self.send(self.letters.pop(0))
            count += 1
        return count

    def claim_item(self, index: int) -> None:
        """A worker takes an item."""
        self.store.claim(NodeKey("a", index), self.now)

    def _lease(self, key: NodeKey) -> int:
        if key in self.store.ready:
            self.store.claim(key, self.now)
        return self.store.leases.pop(key).attempt

    def done(self, index: int, output: Any = None) -> TaskCompleted:
        """The event of an item's success; ends its lease."""
        attempt = self._lease(NodeKey("a", index))
        return TaskCompleted(
            node="a", index=index, attempt=attempt, output=Payload.of(output), worker="worker-1", started_at=self.now
        )

    def item(self, index: int, output: Any = None) -> Reply:
        """An item completes."""
        return self.send(self.done(index, output))

    def break_item(self, index: int, kind: str = "boom", **more: Any) -> Reply:
        """An item's attempt fails."""
        attempt = self._lease(NodeKey("a", index))
        error = ErrorInfo(kind, f"{kind} happened")
        event = TaskFailed(
            node="a", index=index, attempt=attempt, error=error, worker="worker-1", started_at=self.now, **more
        )
        return self.send(event)

    @property
    def group(self) -> TaskRow:
        """The loop's own row."""
        return self.store.tasks[NodeKey("a", GROUP)]

    @property
    def counters(self) -> Loop:
        """The loop's counters."""
        assert self.group.detail is not None
        assert self.group.detail.loop is not None
        return self.group.detail.loop

    def part(self, index: int) -> TaskRow:
        """The row of an item or iteration."""
        return self.store.tasks[NodeKey("a", index)]

    def parts(self) -> list[str]:
        """States of all items or iterations that have rows, in order."""
        return [self.part(key.index).state.value for key in sorted(self.store.tasks) if key.node == "a" and key[1] >= 0]

    def inputs(self) -> list[Any]:
        """Inputs of all items or iterations that have rows, in order."""
        rows = [self.part(key.index) for key in sorted(self.store.tasks) if key.node == "a" and key.index >= 0]
        return [row.input.value if row.input is not None else None for row in rows]

    def ready(self) -> list[int]:
        """Indexes of items that a worker may take."""
        return sorted(key.index for key in self.store.ready if key.node == "a")

    def gave(self) -> Any:
        """The loop's output."""
        return self.group.output.value if self.group.output is not None else None
