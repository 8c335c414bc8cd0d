"""What a committed batch tells its own process, so that its duties need not wait for their next look.

Invariant: a notice is a hint after the commit; whoever misses it finds the work at its next look. Trade-off: plain
callbacks on the event loop, which must not block, against a queue that somebody would have to empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from partita.engine.messages import Delivery


@dataclass(slots=True)
class Notices:
    """Callbacks of this process's duties."""

    ready: list[Callable[[frozenset[str]], None]] = field(default_factory=list)
    """Called with the queues that received ready tasks."""
    timer: list[Callable[[datetime], None]] = field(default_factory=list)
    """Called with the earliest time of the timers that were set."""
    projection: list[Callable[[], None]] = field(default_factory=list)
    """Called when a run of a WorkflowRun object has something new to show."""
    messages: list[Callable[[list[Delivery]], None]] = field(default_factory=list)
    """Called with the messages to runs that were sent, in their order."""
    outdated: list[Callable[[], None]] = field(default_factory=list)
    """Called once when the schema demands a newer engine protocol: this process has to stop working."""

    def tell_ready(self, queues: frozenset[str]) -> None:
        """Ready rows were committed in these queues."""
        for callback in self.ready:
            callback(queues)

    def tell_timer(self, earliest: datetime) -> None:
        """Timers were committed, the earliest of them for this time."""
        for callback in self.timer:
            callback(earliest)

    def tell_projection(self) -> None:
        """Rows were committed to the projection queue."""
        for callback in self.projection:
            callback()

    def tell_messages(self, sent: list[Delivery]) -> None:
        """Messages were committed to the inboxes of runs."""
        for callback in self.messages:
            callback(sent)

    def tell_outdated(self) -> None:
        """The schema has moved on."""
        for callback in self.outdated:
            callback()
