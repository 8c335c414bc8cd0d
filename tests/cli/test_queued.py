"""A run that no worker takes says that it waits for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.cli.exits import Exit
from partita.cli.queued import waiting_for_worker
from partita.domain.state.rows import RunStatus
from partita.store.views import NodeView
from tests.cli.commands import Cli

MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: charge}
spec: {nodes: [{name: charge, task: {type: charge, queue: cards}}]}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: first}
spec: {definitionRef: {name: charge}}
"""


def test_a_run_without_a_worker_says_so(on_database: Cli, tmp_path: Path) -> None:
    file = tmp_path / "charge.yaml"
    file.write_text(MANIFEST)
    done = on_database("submit", str(file), "-o", "json")
    assert done.code == Exit.OK, done.err
    identity = done.json[1]["id"]
    shown = on_database("get", identity, "-o", "json").json
    assert shown["run"]["waiting"] == "a worker (queue cards)"
    assert "waiting for a worker (queue cards)" in on_database("get", identity).out
    assert on_database("suspend", identity).code == Exit.OK
    assert on_database("get", identity, "-o", "json").json["run"]["waiting"] == "resume"


@pytest.mark.parametrize(
    ("status", "nodes", "words"),
    [
        (RunStatus.RUNNING, [("Queued", "a"), ("Queued", "a")], "a worker (queue a)"),
        (RunStatus.RUNNING, [("Queued", q) for q in "abcd"], "a worker (queue a, b and 2 more)"),
        (RunStatus.RUNNING, [("Queued", "a"), ("Running", "b")], ""),
        (RunStatus.RUNNING, [("Completed", "a")], ""),
        (RunStatus.SUSPENDED, [("Queued", "a")], ""),
        (RunStatus.CANCELLED, [("Queued", "a")], ""),
    ],
)
def test_words(status: RunStatus, nodes: list[tuple[str, str]], words: str) -> None:
    assert waiting_for_worker(status, [_node(state, queue) for state, queue in nodes]) == words


def _node(state: str, queue: str) -> NodeView:
    return NodeView(
        node="n",
        index=0,
        kind="task",
        state=state,
        attempt=1,
        queue=queue,
        worker="",
        queued_at=None,
        claimed_at=None,
        finished_at=None,
        input=None,
        output=None,
        error=None,
        event=None,
    )
