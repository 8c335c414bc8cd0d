"""What is known of a node while it is interpreted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.property.reference.graph import Manifest

Error = dict[str, Any]
FINAL = ("Completed", "Failed", "Skipped", "Cancelled")


@dataclass
class Work:
    """One thing that is attempted: a plain node, an item, an iteration, or what reverses one of them."""

    index: int
    state: str = "Pending"
    """Waiting for anything (a worker, a child, a delay) is Waiting."""
    attempt: int = 0
    begun: bool = False
    """An attempt is queued or in flight, or a child is."""
    step: int = -1
    """The step of the simulation in which the attempt began."""
    input: Any = None
    output: Any = None
    error: Error | None = None
    used: dict[str, int] = field(default_factory=dict)
    """Retries by tier."""
    since: dict[str, int] = field(default_factory=dict)
    completed: int = 0
    """Its place among all completions of the run; 0: not completed."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Names that expressions of an item or iteration have."""

    @property
    def settled(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL


@dataclass
class Spot:
    """A node."""

    node: Manifest
    state: str = "Pending"
    fired: bool = False
    stepped: bool = False
    """Skipped by its own ``when``."""
    route: list[str] | None = None
    error: Error | None = None
    output: Any = None
    event: Any = None
    works: dict[int, Work] = field(default_factory=dict)
    keys: list[str] | None = None
    """Of a forEach over an object."""
    items: list[Any] = field(default_factory=list)
    closing: str = ""
    """Of a forEach: joined or failed, once nothing further starts."""
    crossing: Error | None = None
    """The failure with which a forEach had too many."""
    collected: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    """Signals that a wait with ``until`` took."""

    @property
    def name(self) -> str:
        """The node's name."""
        return str(self.node["name"])

    @property
    def settled(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL

    @property
    def looped(self) -> bool:
        """Whether it is a forEach or repeat."""
        return "forEach" in self.node or "repeat" in self.node
