"""Signals and the nodes that wait for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.property.reference.graph import milliseconds
from tests.property.reference.spot import Spot
from tests.property.reference.tries import error
from tests.property.reference.words import ExpressionFailed, holds, render

if TYPE_CHECKING:
    from tests.property.reference.run import Run

Wait = dict[str, Any]
BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)
"""The time 0, of which signals are told a date; they come at whole seconds."""


class Mailbox:
    """A run's mailbox. Runs of subflows have none: they wait at the mailbox of their nearest other ancestor."""

    def __init__(self, run: Run, owner: Mailbox | None) -> None:
        self.run = run
        self.owner: Mailbox = owner or self
        self.signals: list[dict[str, Any]] = []
        self.waits: list[Wait] = []
        self.places = 0

    # For the nodes of this run ---------------------------------------------------------------------------------------

    def wait(self, spot: Spot) -> None:
        """A waitForEvent has fired."""
        event = spot.node["waitForEvent"] or {}
        options = event.get("anyOf") or [{"name": event.get("name", spot.name), "schema": event.get("schema")}]
        names = [str(render(option["name"], self.run.names(spot))) for option in options]
        wait = {
            "run": self.run,
            "spot": spot,
            "names": names,
            "schemas": {name: option.get("schema") for name, option in zip(names, options, strict=True)},
            "ignore": event.get("ignoreEarlier", False),
            "place": 0,
        }
        if "timeout" in event:
            self.run.at("eventTimeout", spot.name, 0, milliseconds(event["timeout"]), lambda: self._expired(spot))
        self._ask(wait)

    def _ask(self, wait: Wait) -> None:
        if self.owner is self:
            self._open(wait)
        else:
            self.run.sim.post(self.owner.run.path, lambda: self.owner._open(wait))

    def _given(self, wait: Wait, signal: dict[str, Any]) -> None:
        spot: Spot = wait["spot"]
        if spot.settled or self.run.ended:
            return
        event = spot.node["waitForEvent"] or {}
        spot.event = {"name": signal["name"], "id": signal["id"], "sender": "", "time": signal["time"]}
        spot.events.append({**spot.event, "payload": signal["payload"]})
        if "until" in event:
            try:
                if not holds(event["until"], {**self.run.names(spot), "events": spot.events}):
                    self._ask({**wait, "ignore": False})
                    return
            except ExpressionFailed as failed:
                self.run.drop(spot.name)
                self.run.fail_node(spot, error("expression", str(failed)))
                return
            output: Any = [*spot.events]
        else:
            output = signal["payload"]
            if "anyOf" in event:
                output = {"name": signal["name"], "payload": signal["payload"]}
        self.run.drop(spot.name)
        self.run.complete_node(spot, output)
        self.run.settle()

    def _expired(self, spot: Spot) -> None:
        if self.owner is self:
            self._expire(self, spot)
        else:
            self.run.sim.post(self.owner.run.path, lambda: self.owner._expire(self, spot))

    def _timed_out(self, spot: Spot) -> None:
        if spot.settled or self.run.ended:
            return
        self._end_late(spot)
        self.run.settle()

    def _end_late(self, spot: Spot) -> None:
        on_timeout = (spot.node["waitForEvent"] or {}).get("onTimeout")
        if on_timeout is None:
            self.run.fail_node(spot, error("timeout"))
        elif "output" in on_timeout:
            try:
                self.run.complete_node(spot, render(on_timeout["output"], self.run.names(spot)))
            except ExpressionFailed as failed:
                self.run.fail_node(spot, error("expression", str(failed)))
        else:
            spot.state, spot.error, spot.route = "Failed", error("timeout"), on_timeout["next"]

    def close(self, spot: Spot) -> None:
        """A node does not wait any more."""
        self.owner.waits = [wait for wait in self.owner.waits if wait["spot"] is not spot]

    # For the mailbox -------------------------------------------------------------------------------------------------

    def arrive(self, name: str, id_: str, payload: Any) -> None:
        """A signal arrives."""
        signal = {"name": name, "id": id_, "payload": payload, "taken": "", "refused": False, "time": self._time()}
        self.signals.append(signal)
        for wait in sorted(self.waits, key=lambda one: int(one["place"])):
            if name in wait["names"]:
                self._offer(wait, signal)
                break

    def _expire(self, asker: Mailbox, spot: Spot) -> None:
        """A wait has reached its timeout; if it does not stand any more a signal is on its way to it."""
        if not any(wait["spot"] is spot for wait in self.waits):
            return
        self.waits = [wait for wait in self.waits if wait["spot"] is not spot]
        if asker is self:
            self._timed_out(spot)
        else:
            self.run.sim.post(asker.run.path, lambda: asker._timed_out(spot))

    def _time(self) -> str:
        return f"{BEGINNING + timedelta(milliseconds=self.run.sim.now):%Y-%m-%dT%H:%M:%SZ}"

    def _open(self, wait: Wait) -> None:
        spot: Spot = wait["spot"]
        if spot.settled or self.run.ended:
            return
        if not wait["place"]:
            self.places += 1
            wait["place"] = self.places
        self.waits.append(wait)
        for signal in self.signals:
            if signal["name"] in wait["names"] and not signal["taken"] and not signal["refused"]:
                if wait["ignore"]:
                    signal["refused"] = True
                elif self._offer(wait, signal):
                    return

    def _offer(self, wait: Wait, signal: dict[str, Any]) -> bool:
        schema = wait["schemas"][signal["name"]]
        if schema is not None and (not isinstance(signal["payload"], int) or isinstance(signal["payload"], bool)):
            signal["refused"] = True
            return False
        signal["taken"] = wait["spot"].name
        self.waits = [other for other in self.waits if other is not wait]
        taker: Mailbox = wait["run"].mailbox
        if taker is self:
            self._given(wait, signal)
        else:
            self.run.sim.post(taker.run.path, lambda: taker._given(wait, signal))
        return True
