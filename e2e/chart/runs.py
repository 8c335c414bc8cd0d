"""Runs that tests start, and what the database recorded of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from e2e.chart.release import Release

GO = '[{"op":"add","path":"/spec/signals/-","value":{"id":"g1","name":"go"}}]'
"""The patch that lets a run of `gate` go on."""
AT_ONCE = 10
PARTS = 12
STEPS = ("first", "second", "third")

Rows = list[list[str]]


def runs_of(definition: str, *names: str) -> str:
    """Return WorkflowRuns of a definition of `steps.yaml` as JSON; each gets its own name as `text`."""
    api = {"apiVersion": "partita.dev/v1alpha1", "kind": "WorkflowRun"}
    items = [
        {**api, "metadata": {"name": name}, "spec": {"definitionRef": {"name": definition}, "input": {"text": name}}}
        for name in names
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def recorded(sql: Callable[[str], Rows], *names: str, schema: str = "partita") -> list[tuple[str, ...]]:
    """Run and node of every recorded end of a task of these runs, in order; what was recorded twice is there twice."""
    rows = sql(
        f"SELECT name, node FROM {schema}.run_history JOIN {schema}.workflow_runs ON id = run_id "  # noqa: S608 - a name of the tests
        "WHERE event = 'TaskCompleted'"
    )
    return sorted(tuple(row) for row in rows if row[0] in names)


def steps_of(*names: str) -> list[tuple[str, ...]]:
    """Return what is recorded of runs of `steps` that have ended well."""
    return sorted((name, node) for name in names for node in STEPS)


def succeed(product: Release, *names: str, seconds: int = 90) -> None:
    """Wait until all these runs have succeeded."""
    for first in range(0, len(names), 40):
        objects = [f"wfr/{name}" for name in names[first : first + 40]]
        condition = ("--for=condition=Succeeded", f"--timeout={seconds}s")
        product.kubectl("wait", *condition, *objects, seconds=seconds + 20)


class Load:
    """Applies runs of `steps` in parts while something else happens."""

    def __init__(self, product: Release, prefix: str) -> None:
        self._product = product
        self.names = [f"{prefix}-{number}" for number in range(PARTS * AT_ONCE)]
        self._errors: list[Exception] = []

    def beside(self, change: Callable[[], object]) -> None:
        """Apply all while `change` runs; both have ended when it returns, and neither has failed."""
        thread = threading.Thread(target=self._apply)
        thread.start()
        try:
            change()
        finally:
            thread.join()
        assert self._errors == []

    def _apply(self) -> None:
        try:
            for first in range(0, len(self.names), AT_ONCE):
                part = self.names[first : first + AT_ONCE]
                self._product.kubectl("apply", "-f", "-", stdin=runs_of("steps", *part))
        except Exception as error:  # noqa: BLE001 - it is shown by the test's own thread
            self._errors.append(error)

    def check(self) -> None:
        """Every run succeeded, and each of its tasks was recorded once."""
        succeed(self._product, *self.names)
        assert recorded(self._product.sql, *self.names) == steps_of(*self.names)
