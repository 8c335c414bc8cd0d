"""Child runs."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.property.reference.graph import Manifest
from tests.property.reference.script import Path
from tests.property.reference.spot import Spot, Work
from tests.property.reference.tries import error

if TYPE_CHECKING:
    from tests.property.reference.run import Run


def placeholder(path: Path) -> str:
    """Stands for a run's id."""
    return f"run {json.dumps(path)}"


class Children:
    """The children of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def begin(self, spot: Spot, work: Work) -> None:
        """Start the child of an attempt."""
        from tests.property.reference.run import Run  # noqa: PLC0415  # a run has children, and they are runs

        work.attempt += 1
        run, wanted = self.run, spot.node["workflow"]
        path = (*run.path, (spot.name, work.index, work.attempt))
        if run.depth + 1 > run.sim.child_depth:
            self.run.give_up(spot, work, error("depth_exceeded"))
            return
        found = self._definition(wanted)
        if found is None:
            self.run.give_up(spot, work, error("definition_not_found"))
            return
        spec, options = found
        given = accepted(spec, work.input) if "name" in wanted else work.input
        detached = wanted.get("detach", False)
        if given is None and detached:
            self.run.work_completed(spot.name, work, {"runId": placeholder(path)})
            return
        if given is None:
            work.state, work.begun = "Waiting", True
            run.sim.post(path, lambda: run.sim.post(run.path, lambda: self._refused(spot, work, path)))
            return
        if "subflow" in wanted and not detached:
            options["owner"] = run.mailbox.owner
        child = Run(
            run.sim,
            spec,
            path,
            given,
            depth=run.depth + 1,
            parent=None if detached else run,
            timeout=spot.node.get("timeout"),
            **options,
        )
        run.sim.runs[path] = child
        run.sim.post(path, child.start)
        if detached:
            run.work_completed(spot.name, work, {"runId": placeholder(path)})
        else:
            work.state, work.begun = "Waiting", True

    def _refused(self, spot: Spot, work: Work, path: Path) -> None:
        """A child did not start, since its input breaks the schema."""
        if work.begun and not self.run.ended and work.attempt == path[-1][2]:
            self.run.work_failed(spot.name, work, error("invalid_input"))

    def _definition(self, wanted: Manifest) -> tuple[Manifest, dict[str, Any]] | None:
        if "subflow" in wanted:
            holder = self.run.holder
            spec = next(one for one in holder["subflows"] if one["name"] == wanted["subflow"])
            return spec, {"holder": holder, "config": self.run.config}
        versions = self.run.sim.catalogue.get(wanted["name"], {})
        version = wanted.get("version", max(versions, default=0))
        return (versions[version], {}) if version in versions else None

    def finished(self, child: Run) -> None:
        """A child has ended."""
        name, index, attempt = child.path[-1]
        spot = self.run.table.get(name) or self.run.main.get(name)
        work = spot.works.get(index) if spot is not None else None
        if spot is None or work is None or work.settled or work.attempt != attempt or not work.begun or self.run.ended:
            return
        match child.closing.status:
            case "Succeeded":
                self.run.work_completed(name, work, child.closing.output)
            case "Failed":
                self.run.work_failed(name, work, child.closing.error or error("failed"))
            case _:
                self.run.work_failed(name, work, error("cancelled"))

    def cancel(self, spot: Spot, work: Work) -> None:
        """Cancel the child of an attempt."""
        path = (*self.run.path, (spot.name, work.index, work.attempt))
        child = self.run.sim.runs.get(path)
        if child is None:
            return
        self.run.sim.post(path, lambda: child.closing.cancel(now=False))

    def cancel_all_now(self) -> None:
        """Cancel every child without undo and finally, also one that is only finishing."""
        for path, child in self.run.sim.runs.items():
            if child.parent is self.run:
                self.run.sim.post(path, partial(child.closing.cancel, now=True))

    def report(self) -> None:
        """Tell the parent that this run has ended."""
        parent = self.run.parent
        if parent is not None:
            parent.sim.post(parent.path, lambda: parent.children.finished(self.run))


def accepted(spec: Manifest, given: Any) -> Any:
    """An input with its defaults; None if the schema refuses it. Schemas are flat objects of typed properties."""
    schema = spec.get("inputSchema")
    if schema is None:
        return given
    types: dict[str, type] = {"boolean": bool, "integer": int}
    properties: dict[str, Any] = schema.get("properties", {})
    filled = {name: one["default"] for name, one in properties.items() if "default" in one} | given
    for name in schema.get("required", ()):
        if name not in filled:
            return None
    for name, one in properties.items():
        value = filled.get(name)
        if name in filled and (
            not isinstance(value, types[one["type"]]) or (one["type"] == "integer" and isinstance(value, bool))
        ):
            return None
    return filled
