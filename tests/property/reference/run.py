"""One run: passes over its nodes until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.property.reference import joins
from tests.property.reference.children import Children
from tests.property.reference.closing import Closing
from tests.property.reference.ends import Ends
from tests.property.reference.graph import Flow, Manifest, milliseconds
from tests.property.reference.loops import Loops
from tests.property.reference.mailbox import Mailbox
from tests.property.reference.script import Path
from tests.property.reference.spot import Spot, Work
from tests.property.reference.tries import Tries, error
from tests.property.reference.view import node_view, run_result, run_view
from tests.property.reference.words import ExpressionFailed, holds, render

if TYPE_CHECKING:
    from tests.property.reference.simulation import Simulation

UNDO = "~undo"


class Run(Ends):
    """A run of a definition, a subflow, or a definition by name."""

    def __init__(self, sim: Simulation, spec: Manifest, path: Path, given: Any, **more: Any) -> None:
        self.sim, self.spec, self.path, self.input = sim, spec, path, given
        self.config: dict[str, Any] = more["config"] if "config" in more else spec.get("config", {})
        self.holder: Manifest = more.get("holder", spec)
        """The definition whose subflows may be called."""
        self.parent: Run | None = more.get("parent")
        self.depth: int = more.get("depth", 0)
        self.timeout: str | None = more.get("timeout") or spec.get("timeout")
        self.mailbox = Mailbox(self, more.get("owner"))
        self.flow = Flow(spec)
        self.main = {name: Spot(node) for name, node in self.flow.nodes.items()}
        self.last = {node["name"]: Spot(node) for node in spec.get("finally", {}).get("nodes", ())}
        self.table = self.main
        self.tries, self.loops, self.children, self.closing = Tries(self), Loops(self), Children(self), Closing(self)
        self.completions = 0
        self._passing = False

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.closing.stage == "end"

    # Time ------------------------------------------------------------------------------------------------------------

    def at(self, kind: str, node: str, index: int, delay: int, work: Callable[[], None]) -> None:
        """Plan something."""
        from tests.property.reference.simulation import Key  # noqa: PLC0415  # the simulation holds runs

        key = Key(kind, self.path, node, index)
        assert key not in self.sim.agenda, key

        def due() -> None:
            work()
            self.settle()

        self.sim.agenda[key] = (self.sim.now + delay, due)

    def drop(self, node: str | None = None, index: int | None = None, kind: str | None = None) -> None:
        """Plan nothing any more for a node, an item, or the whole run."""
        for key in [*self.sim.agenda]:
            wanted = zip((node, index, kind), (key.node, key.index, key.kind), strict=True)
            if key.path == self.path and all(one is None or one == other for one, other in wanted):
                del self.sim.agenda[key]

    # Passes ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        if self.timeout:
            self.at("deadline", "", 0, milliseconds(self.timeout), self.closing.deadline)
        self.settle()

    def settle(self) -> None:
        """Pass over the nodes of the stage until nothing changes; then perhaps the stage is over."""
        if self._passing:
            return
        self._passing = True
        while self.closing.stage in ("main", "finally") and self._pass():
            pass
        self._passing = False
        if self.closing.stage in ("main", "finally") and all(spot.settled for spot in self.table.values()):
            self.closing.all_settled()

    def _pass(self) -> bool:
        changed = False
        stage = self.closing.stage
        for name in self.sim.order([*self.table]):
            spot = self.table[name]
            if spot.settled or spot.fired:
                continue
            verdict = joins.verdict(self.flow, self.table, name)
            if verdict == "skip":
                spot.state = "Skipped"
            elif verdict == "fire":
                self._fire(spot)
            changed = changed or verdict != "wait"
            if self.closing.stage != stage:
                break
        return changed

    def _fire(self, spot: Spot) -> None:
        spot.fired = True
        if spot.node.get("cancelRemaining"):
            for other in joins.cancelled_by(self.flow, self.table, spot.name):
                self.cancel_spot(self.table[other])
        try:
            if not holds(spot.node.get("when"), self.names(spot)):
                spot.state, spot.stepped = "Skipped", True
                return
            self._begin(spot)
        except ExpressionFailed as failed:
            self.fail_node(spot, error("expression", str(failed)))

    def _begin(self, spot: Spot) -> None:
        node, names = spot.node, self.names(spot)
        if spot.looped:
            self.loops.start(spot)
        elif "compute" in node:
            self.complete_node(spot, render(node["compute"], names))
        elif "switch" in node:
            self._choose(spot)
        elif "wait" in node:
            self._wait(spot)
        elif "waitForEvent" in node:
            self.mailbox.wait(spot)
        elif "fail" in node:
            failure = error(node["fail"]["type"], render(node["fail"].get("message", ""), names))
            spot.state, spot.error = "Failed", failure
            self.closing.failed_here(failure)
        elif "succeed" in node:
            output = render(node["succeed"].get("output"), names)
            spot.state, spot.output = "Completed", output
            self.closing.end("Succeeded", "", output=output)
        else:
            work = spot.works[0] = Work(0)
            work.input = render(node.get("input", {}), names)
            self.try_again(spot.name, work)

    def _choose(self, spot: Spot) -> None:
        for number, case in enumerate(spot.node["switch"]):
            if holds(case.get("when"), self.names(spot)):
                spot.state, spot.route = "Completed", case["next"]
                spot.output = {"case": number, "next": case["next"]}
                return
        self.fail_node(spot, error("no_case_matched"))

    def _wait(self, spot: Spot) -> None:
        delay = milliseconds(spot.node["wait"]["duration"])
        if delay == 0:
            self.complete_node(spot, None)
        else:
            self.at("wait", spot.name, 0, delay, lambda: self.complete_node(spot, None))

    # What can be seen ------------------------------------------------------------------------------------------------

    def names(self, spot: Spot | None = None) -> dict[str, Any]:
        """The variables of an expression."""
        spots = {**self.main, **self.last}
        seen = {name: node_view(one) for name, one in spots.items()}
        found: dict[str, Any] = {"input": self.input, "config": self.config, "nodes": seen, "run": run_view(self)}
        if spot is not None:
            found["from"] = [
                {"node": name, "output": seen[name]["output"], "error": seen[name]["error"]}
                for name in joins.live_sources(self.flow, self.table, spot.name)
            ]
        return found

    def result(self) -> dict[str, Any]:
        """What became of the run, comparable."""
        return run_result(self)
