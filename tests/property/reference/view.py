"""What expressions see of nodes and runs, and what is compared at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.property.reference.spot import Spot

if TYPE_CHECKING:
    from tests.property.reference.run import Run


def node_view(spot: Spot) -> dict[str, Any]:
    """A node as ``nodes.x``."""
    output = spot.output
    if spot.looped and spot.state in ("Failed", "Cancelled"):
        output = partial(spot)
    return {"output": output, "error": spot.error, "state": spot.state, "event": spot.event}


def partial(spot: Spot) -> Any:
    """The outputs of the items or iterations that completed."""
    if "repeat" in spot.node:
        return None
    if not spot.works:
        return None
    return gathered(spot)


def gathered(spot: Spot) -> Any:
    """A forEach's output: null for what did not complete."""
    values = []
    for index in range(len(spot.items)):
        work = spot.works.get(index)
        values.append(work.output if work is not None and work.state == "Completed" else None)
    return dict(zip(spot.keys, values, strict=True)) if spot.keys is not None else values


def run_view(run: Run) -> dict[str, Any]:
    """A run as ``run``."""
    closing = run.closing
    return {"status": closing.status, "reason": closing.reason, "error": closing.error, "output": closing.output}


DONE = ("Completed", "Failed")
REASONS = ("NodeFailed", "DeadlineExceeded", "InvalidOutput", "FinallyFailed")


def run_result(run: Run) -> dict[str, Any]:
    """What became of a run."""
    closing = run.closing
    return {
        "status": closing.status,
        "reason": closing.reason if closing.reason in REASONS else "",
        "error": closing.error["type"] if closing.error and closing.status == "Failed" else None,
        "output": closing.output,
        "cut": any("succeed" in spot.node and spot.state == "Completed" for spot in run.main.values()),
        "nodes": {name: _spot_result(spot) for name, spot in run.main.items()},
        "finally": {name: _spot_result(spot) for name, spot in run.last.items()},
        "undone": [
            (name, work.index, work.state, work.input or {}) for name, work in closing.undone if work.state in DONE
        ],
    }


def _spot_result(spot: Spot) -> dict[str, Any]:
    failed = spot.state == "Failed" and spot.error
    return {
        "state": spot.state if spot.settled else "Cancelled",
        "stepped": spot.stepped,
        "route": sorted(spot.route) if spot.route is not None else None,
        "output": spot.output if spot.state == "Completed" else None,
        "error": spot.error["type"] if failed and spot.error else None,
        "works": {
            work.index: (work.state, work.attempt, work.input or {}, work.output)
            for work in spot.works.values()
            if work.attempt and work.state in DONE
        },
    }
