"""Ends of nodes and of what they attempt: success, failure, and that nobody wants them any more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tests.property.reference.graph import Manifest
from tests.property.reference.spot import Error, Spot, Work
from tests.property.reference.tries import error, matches
from tests.property.reference.words import ExpressionFailed, holds

if TYPE_CHECKING:
    from tests.property.reference.children import Children
    from tests.property.reference.closing import Closing
    from tests.property.reference.loops import Loops
    from tests.property.reference.mailbox import Mailbox
    from tests.property.reference.script import Path
    from tests.property.reference.simulation import Simulation
    from tests.property.reference.tries import Tries

UNDO = "~undo"


def spot_of(run: Ends, name: str) -> Spot:
    """A node of any stage."""
    return run.table[name] if name in run.table else run.main[name]


class Ends(ABC):
    """The part of a run that ends what it has begun."""

    sim: Simulation
    path: Path
    holder: Manifest
    table: dict[str, Spot]
    main: dict[str, Spot]
    mailbox: Mailbox
    tries: Tries
    loops: Loops
    children: Children
    closing: Closing
    completions: int

    @abstractmethod
    def settle(self) -> None:
        """Pass over the nodes."""

    @abstractmethod
    def drop(self, node: str | None = None, index: int | None = None, kind: str | None = None) -> None:
        """Plan nothing any more."""

    @abstractmethod
    def names(self, spot: Spot | None = None) -> dict[str, Any]:
        """The variables of an expression."""

    def try_again(self, name: str, work: Work) -> None:
        """Begin an attempt."""
        if not name.endswith(UNDO) and "workflow" in self.table[name].node:
            self.children.begin(self.table[name], work)
        else:
            self.tries.begin(name, work)

    def complete_node(self, spot: Spot, output: Any) -> None:
        """A node has done what it is for."""
        spot.state, spot.output, spot.error = "Completed", output, None

    def fail_node(self, spot: Spot, failure: Error) -> None:
        """A node has failed after its retries."""
        spot.state, spot.error = "Failed", failure
        try:
            for route in spot.node.get("onError", ()):
                names = {**self.names(spot), "error": failure}
                if matches(route.get("match", []), failure["type"]) and holds(route.get("when"), names):
                    spot.route = route["next"]
                    return
        except ExpressionFailed as failed:
            spot.error = error("expression", str(failed))
        if spot.node.get("onFailure") != "continue":
            self.closing.unhandled(spot.error)

    def work_completed(self, name: str, work: Work, output: Any) -> None:
        """An attempt has succeeded."""
        self.completions += 1
        work.state, work.output, work.completed, work.begun = "Completed", output, self.completions, False
        if name.endswith(UNDO):
            self.closing.undo_ended()
            return
        spot = spot_of(self, name)
        if self.closing.stage == "undo":
            self.closing.drained(spot, work)
        elif "forEach" in spot.node:
            self.loops.item_ended(spot, work)
        elif "repeat" in spot.node:
            self.loops.iterated(spot, work)
        else:
            self.complete_node(spot, output)
        self.settle()

    def work_lost(self, name: str, work: Work) -> None:
        """A worker has vanished, and the budget of that is not used up."""
        if self.outcome_matters(name):
            self.outcome_unknown(name, work)
        else:
            self.try_again(name, work)

    def outcome_matters(self, name: str) -> bool:
        """Whether undo waits for the attempt, so that one whose outcome nobody will tell is undone."""
        return self.closing.stage == "undo" and not name.endswith(UNDO)

    def outcome_unknown(self, name: str, work: Work, kind: str = "lease_lost") -> None:
        """An attempt that undo waited for has lapsed."""
        self.closing.outcome_unknown(spot_of(self, name), work, kind)
        self.settle()

    def work_lost_too_often(self, name: str, work: Work) -> None:
        """A worker has vanished once more than the budget allows; there is no other try."""
        if name.endswith(UNDO):
            work.state = "Failed"
            self.closing.undo_ended()
        elif self.outcome_matters(name):
            self.outcome_unknown(name, work)
        else:
            self.give_up(spot_of(self, name), work, error("lease_lost"))
        self.settle()

    def work_failed(self, name: str, work: Work, failure: Error, after: int | None = None) -> None:
        """An attempt has failed."""
        work.begun = False
        if name.endswith(UNDO):
            self.closing.undo_failed(name, work, failure, after)
            return
        spot = spot_of(self, name)
        if self.closing.stage == "undo":
            work.state = "Cancelled" if "workflow" in spot.node and failure["type"] == "cancelled" else "Failed"
            work.error = failure
            self.closing.drained(spot, work)
        elif not self.tries.again(name, work, self.tiers(spot), failure, after=after):
            self.give_up(spot, work, failure)
        self.settle()

    def tiers(self, spot: Spot) -> list[Manifest]:
        """The retry policy of a node."""
        default = self.holder.get("defaults", {}).get("retry", []) if "task" in spot.node else []
        tiers: list[Manifest] = spot.node.get("retry", default)
        return tiers

    def give_up(self, spot: Spot, work: Work, failure: Error) -> None:
        """There is no other try."""
        work.state, work.error = "Failed", failure
        if "forEach" in spot.node:
            self.loops.item_ended(spot, work)
        else:
            self.fail_node(spot, failure)

    # Cancelling ------------------------------------------------------------------------------------------------------

    def cancel_spot(self, spot: Spot, *, keep_flying: bool = False) -> None:
        """A node is not wanted any more; with ``keep_flying`` attempts in flight of what can be undone go on."""
        spot.state = "Cancelled"
        spot.error = error("cancelled")
        self.mailbox.close(spot)
        for work in spot.works.values():
            if keep_flying and self.flying(spot, work):
                if "workflow" in spot.node:
                    self.children.cancel(spot, work)
            elif not work.settled:
                self.cancel_work(spot, work)
        self.drop(spot.name, kind="wait")
        self.drop(spot.name, kind="delay")
        self.drop(spot.name, kind="eventTimeout")

    def flying(self, spot: Spot, work: Work) -> bool:
        """Whether a worker has an attempt of something that can be undone, or a child does it."""
        how = self.sim.script.outcome(self.path, spot.name, work.index, work.attempt).how
        taken = "workflow" in spot.node or (work.step < self.sim.step and how != "untaken")
        wanted = "undo" in spot.node or ("workflow" in spot.node and self.closing.waits_for_children)
        return work.begun and taken and wanted

    def cancel_work(self, spot: Spot, work: Work) -> None:
        """An attempt, a child or a backoff is not wanted any more."""
        if work.begun and "workflow" in spot.node:
            self.children.cancel(spot, work)
        work.state, work.begun = "Cancelled", False
        self.drop(spot.name, work.index)

    def cancel_nodes(self, names: list[str]) -> None:
        """Somebody cancels single nodes; the run goes on."""
        if self.closing.stage not in ("main", "finally"):
            return
        for name in names:
            if name in self.table and not self.table[name].settled:
                self.cancel_spot(self.table[name])
        self.settle()
