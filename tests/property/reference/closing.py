"""How a run ends: its nodes, then what reverses them, then what runs after every end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.property.reference.graph import Flow, milliseconds
from tests.property.reference.spot import Error, Spot, Work
from tests.property.reference.tries import UNDO_TRIES, default_tier, error
from tests.property.reference.words import ExpressionFailed, render

if TYPE_CHECKING:
    from tests.property.reference.run import Run

DRAIN_MS = 60_000
_ABSENT = object()


class Closing:
    """The stages of one run: main, undo, finally, end."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.stage = "main"
        self.status, self.reason = "Running", ""
        self.error: Error | None = None
        self.output: Any = None
        self.first: Error | None = None
        """The first failure that nobody handled, of main or of finally."""
        self.undone: list[tuple[str, Work]] = []
        self.left: list[tuple[Spot, Work]] = []

    @property
    def waits_for_children(self) -> bool:
        """Whether the run has an undo or a finally, which come after those of its children."""
        return bool(self.run.last) or any("undo" in spot.node for spot in self.run.main.values())

    # Ends of the stage main ------------------------------------------------------------------------------------------

    def unhandled(self, failure: Error) -> None:
        """A node has failed and nobody cares."""
        if self.stage == "main" and self.run.spec.get("failFast", True):
            self.end("Failed", "NodeFailed", failure)
        elif self.stage == "main":
            self.first = self.first or failure
        else:
            self._finally_failed(failure)

    def failed_here(self, failure: Error) -> None:
        """A ``fail`` node has fired."""
        if self.stage == "main":
            self.end("Failed", "NodeFailed", failure)
        elif self.stage == "main":
            self.first = self.first or failure
        else:
            self._finally_failed(failure)

    def _finally_failed(self, failure: Error) -> None:
        """The coming status changes at once; an earlier error stays, and so does the output."""
        if self.status == "Succeeded":
            self.status, self.reason, self.error = "Failed", "FinallyFailed", failure

    def deadline(self) -> None:
        """The run's own timeout has passed."""
        if self.stage == "main":
            self.end("Failed", "DeadlineExceeded", error("timeout"))

    def all_settled(self) -> None:
        """Every node of the stage is settled."""
        if self.stage == "finally":
            self._finish()
        elif self.first is not None:
            self.end("Failed", "NodeFailed", self.first)
        else:
            self.end("Succeeded", "")

    def end(self, status: str, reason: str, failure: Error | None = None, output: Any = _ABSENT) -> None:
        """The stage main is over."""
        if self.stage != "main":
            return
        if status == "Succeeded" and output is _ABSENT:
            try:
                output = render(self.run.spec.get("output"), self.run.names())
            except ExpressionFailed as failed:
                status, reason, failure = "Failed", "InvalidOutput", error("expression", str(failed))
        self.status, self.reason, self.error = status, reason, failure
        self.output = output if status == "Succeeded" else None
        self.first = None
        self.run.drop(kind="deadline")
        self.stage = "undo"
        self._cancel_rest(keep_flying=status != "Succeeded")
        self._begin_undo()

    def _cancel_rest(self, *, keep_flying: bool) -> None:
        for spot in self.run.table.values():
            if not spot.settled:
                self.run.cancel_spot(spot, keep_flying=keep_flying)

    def cancel(self, *, now: bool) -> None:
        """Somebody cancels the run."""
        if self.stage == "end":
            return
        if now:
            self.stage = "end"
            self.run.children.cancel_all_now()
            for spot in [*self.run.main.values(), *self.run.last.values()]:
                self._abandon(spot)
            self.status, self.reason, self.error = "Cancelled", "", None
            self._finish()
        elif self.stage == "main":
            self.end("Cancelled", "", error("cancelled"))

    @staticmethod
    def _abandon(spot: Spot) -> None:
        for work in spot.works.values():
            if not work.settled:
                work.state, work.begun = "Cancelled", False

    # Undo ------------------------------------------------------------------------------------------------------------

    def _flying(self) -> list[tuple[Spot, Work]]:
        return [(spot, work) for spot in self.run.main.values() for work in spot.works.values() if work.begun]

    def _begin_undo(self) -> None:
        if self.status == "Succeeded":
            self._begin_finally()
        elif self._flying():
            self.run.at("drain", "", 0, DRAIN_MS, self._drain_over)
        else:
            self._list_undo()

    def drained(self, spot: Spot, work: Work) -> None:
        """An attempt that undo waited for has ended."""
        if work.state == "Completed" and not spot.looped:
            spot.state, spot.output, spot.error = "Completed", work.output, None
        elif work.state == "Failed" and not spot.looped:
            spot.state, spot.error = "Failed", work.error
        if not self._flying():
            self.run.drop(kind="drain")
            self._list_undo()

    def outcome_unknown(self, spot: Spot, work: Work, kind: str = "lease_lost") -> None:
        """Nobody will say how an attempt ended: it is undone as if it had completed."""
        self.run.cancel_work(spot, work)
        self.run.completions += 1
        work.completed, work.error = self.run.completions, error(kind)
        self.drained(spot, work)

    def _drain_over(self) -> None:
        for spot, work in self._flying():
            self.outcome_unknown(spot, work, "cancelled")

    def _list_undo(self) -> None:
        found = [
            (spot, work)
            for spot in self.run.main.values()
            for work in spot.works.values()
            if "undo" in spot.node and work.completed
        ]
        self.left = sorted(found, key=lambda one: one[1].completed)
        self._next_undo()

    def _next_undo(self) -> None:
        if not self.left:
            self._begin_finally()
            return
        spot, work = self.left.pop()
        names = {**self.run.names(), "input": work.input, "output": work.output, "error": work.error}
        undo = Work(work.index)
        self.undone.append((f"{spot.name}~undo", undo))
        try:
            undo.input = render(spot.node["undo"].get("input", {}), names)
        except ExpressionFailed:
            undo.state = "Failed"
            self._next_undo()
            return
        self.run.tries.begin(f"{spot.name}~undo", undo)

    def undo_ended(self) -> None:
        """What reverses a node has succeeded, or failed after its tries."""
        self._next_undo()

    def undo_failed(self, name: str, work: Work, failure: Error, after: int | None) -> None:
        """What reverses a node has failed."""
        tiers = self.run.holder.get("defaults", {}).get("retry") or [default_tier(UNDO_TRIES)]
        if not self.run.tries.again(name, work, tiers, failure, after=after):
            work.state = "Failed"
            self._next_undo()

    # Finally ---------------------------------------------------------------------------------------------------------

    def _begin_finally(self) -> None:
        if not self.run.last:
            self._finish()
            return
        self.stage = "finally"
        spec = self.run.spec["finally"]
        self.run.flow, self.run.table = Flow(spec), self.run.last
        if "timeout" in spec:
            self.run.at("deadline", "", 0, milliseconds(spec["timeout"]), self._late)
        self.run.settle()

    def _late(self) -> None:
        self._finally_failed(error("timeout"))
        self._cancel_rest(keep_flying=False)
        self.all_settled()

    def _finish(self) -> None:
        self.stage = "end"
        self.run.drop()
        for wait in [*self.run.mailbox.owner.waits]:
            if wait["run"] is self.run:
                self.run.mailbox.close(wait["spot"])
        self.run.children.report()
