"""The workflow that is measured: three tasks that do nothing, one after the other.

Invariant: it is a manifest like any other, parsed, validated and stored by the engine.
"""

from __future__ import annotations

from typing import Any, Final

NAMESPACE: Final = "bench"
NAME: Final = "three-steps"
NODES: Final = ("first", "second", "third")
STEPS: Final = len(NODES)


def spec(queue: str = "default") -> dict[str, Any]:
    """The definition's spec, its tasks in this queue."""
    before = ((), *((node,) for node in NODES))
    return {
        "nodes": [
            {"name": node, "task": {"type": "noop", "queue": queue}, **({"dependsOn": list(after)} if after else {})}
            for node, after in zip(NODES, before, strict=False)
        ]
    }
