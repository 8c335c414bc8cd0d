"""forEach and repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.property.reference.graph import milliseconds
from tests.property.reference.spot import Spot, Work
from tests.property.reference.tries import error
from tests.property.reference.view import gathered
from tests.property.reference.words import ExpressionFailed, holds, render

if TYPE_CHECKING:
    from tests.property.reference.run import Run

MOST_ITEMS = 10_000


class Loops:
    """The loops of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def start(self, spot: Spot) -> None:
        """A loop's node has fired."""
        if "repeat" in spot.node:
            self._iterate(spot, 0)
            return
        options = spot.node["forEach"]
        items = render(options["items"], self.run.names(spot))
        if isinstance(items, dict):
            spot.keys = sorted(items)
            spot.items = [items[key] for key in spot.keys]
        elif isinstance(items, list):
            spot.items = items
        else:
            raise ExpressionFailed("items are no list")
        if len(spot.items) > MOST_ITEMS:
            self.run.fail_node(spot, error("too_many_items"))
        elif options.get("joinCount", 0) > len(spot.items):
            self.run.fail_node(spot, error("too_few_items"))
        elif not spot.items:
            self.run.complete_node(spot, {} if spot.keys is not None else [])
        else:
            self._advance(spot)

    def _advance(self, spot: Spot) -> None:
        options = spot.node["forEach"]
        while not spot.settled and not spot.closing and len(spot.works) < len(spot.items):
            running = [work for work in spot.works.values() if not work.settled]
            if len(running) >= options.get("maxParallel", 100):
                return
            self._start_item(spot, len(spot.works))

    def _start_item(self, spot: Spot, index: int) -> None:
        work = spot.works[index] = Work(index)
        work.extra = {
            spot.node["forEach"].get("as", "item"): spot.items[index],
            "index": index,
            "key": spot.keys[index] if spot.keys is not None else None,
        }
        try:
            work.input = render(spot.node.get("input", {}), {**self.run.names(spot), **work.extra})
        except ExpressionFailed as failed:
            self.run.give_up(spot, work, error("expression", str(failed)))
            return
        self.run.try_again(spot.name, work)

    def item_ended(self, spot: Spot, work: Work) -> None:
        """An item has completed, or failed after its retries."""
        if spot.settled:
            return
        options = spot.node["forEach"]
        completed = [one for one in spot.works.values() if one.state == "Completed"]
        failed = [one for one in spot.works.values() if one.state == "Failed"]
        if not spot.closing and options.get("joinCount") and len(completed) >= options["joinCount"]:
            spot.closing = "joined"
        elif not spot.closing and self._too_many(spot, len(failed)):
            spot.closing, spot.crossing = "failed", work.error
        if spot.closing and options.get("cancelRemaining"):
            for other in spot.works.values():
                if not other.settled:
                    self.run.cancel_work(spot, other)
        if not spot.closing:
            self._advance(spot)
        self._close(spot)

    @staticmethod
    def _too_many(spot: Spot, failed: int) -> bool:
        options, total = spot.node["forEach"], len(spot.items)
        bound: Any = options.get("maxFailures")
        if options.get("joinCount") and failed > total - options["joinCount"]:
            return True
        if isinstance(bound, str):
            return failed * 100 > int(bound.rstrip("%")) * total
        if bound is None:
            bound = total if options.get("joinCount") else 0
        return failed > int(bound)

    def _close(self, spot: Spot) -> None:
        if spot.settled or any(not work.settled for work in spot.works.values()):
            return
        if spot.closing == "failed" and spot.crossing is not None:
            self.run.fail_node(spot, spot.crossing)
        elif spot.closing or len(spot.works) == len(spot.items):
            self.run.complete_node(spot, gathered(spot))

    def _iterate(self, spot: Spot, number: int) -> None:
        previous = spot.works[number - 1].output if number else None
        work = spot.works[number] = Work(number)
        work.extra = {"iteration": number, "previous": previous}
        try:
            work.input = render(spot.node.get("input", {}), {**self.run.names(spot), **work.extra})
        except ExpressionFailed as failed:
            self.run.give_up(spot, work, error("expression", str(failed)))
            return
        self.run.try_again(spot.name, work)

    def iterated(self, spot: Spot, work: Work) -> None:
        """An iteration has completed."""
        options = spot.node["repeat"]
        names = {**self.run.names(spot), **work.extra, "output": work.output}
        try:
            if "collect" in options:
                spot.collected.append(render(options["collect"], names))
            done = holds(options["until"], names) if "until" in options else not holds(options["while"], names)
        except ExpressionFailed as failed:
            self.run.fail_node(spot, error("expression", str(failed)))
            return
        following = work.index + 1
        if done:
            self.run.complete_node(spot, spot.collected if "collect" in options else work.output)
        elif following >= options.get("maxIterations", 1_000):
            self.run.fail_node(spot, error("max_iterations"))
        elif delay := milliseconds(options.get("delay", "0s")):
            self.run.at("delay", spot.name, following, delay, lambda: self._iterate(spot, following))
        else:
            self._iterate(spot, following)
