"""A local session serves what its manifest needs, executes its own runs alone, and leaves none unfinished."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from partita.cli.apart import marked
from partita.cli.exits import Exit
from tests.cli.commands import Cli

GPU = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: one}
spec: {definitionRef: {name: heavy}}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: heavy}
spec: {nodes: [{name: work, task: {type: work, queue: gpu}}]}
"""
ASK = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: asks}
spec:
  nodes:
    - name: ask
      waitForEvent: {schema: {type: object, required: [ok]}, timeout: TIMEOUT, onTimeout: {next: []}}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: asking}
spec: {definitionRef: {name: asks}}
"""
TASKS = """
from partita.worker import Tasks

app = Tasks()

@app.task("work")
async def work() -> None:
    return None
"""


def folder(tmp_path: Path, text: str) -> str:
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "flow.yaml").write_text(text)
    return str(tmp_path / "flow.yaml")


def test_every_queue_of_the_manifest_is_served(partita: Cli, database_url: str, tmp_path: Path) -> None:
    done = partita("dev", "run", folder(tmp_path, GPU), "--database-url", database_url, "-o", "json")
    assert (done.code, done.json[0]["run"]["phase"]) == (Exit.OK, "Succeeded"), done.err


def test_an_input_that_does_not_fit_is_one_line(database_url: str, tmp_path: Path) -> None:
    file = folder(tmp_path, GPU.replace("queue: gpu}", "queue: gpu}, input: {more: 1}"))
    command = [str(Path(sys.executable).parent / "partita"), "dev", "run", file, "--database-url", database_url]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == Exit.RUN_FAILED, done.stderr
    assert "task failed: invalid_input: input: more is unknown" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_event_that_breaks_the_schema_is_named_and_the_session_goes_on(
    partita: Cli, database_url: str, tmp_path: Path
) -> None:
    file = folder(tmp_path, ASK.replace("TIMEOUT", "2s"))
    done = partita("dev", "run", file, "--event", 'ask={"no": 1}', "--database-url", database_url)
    assert done.code == Exit.OK, done.err
    assert "--event ask: run " in done.err
    assert "'ok'" in done.err
    assert "nobody sends event ask" in done.err


def test_what_is_unfinished_at_ctrl_c_is_cancelled(on_database: Cli, database_url: str, tmp_path: Path) -> None:
    file = folder(tmp_path, ASK.replace("TIMEOUT", "1h"))
    command = [str(Path(sys.executable).parent / "partita"), "dev", "run", file, "--database-url", database_url]
    with subprocess.Popen(command, env=os.environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) == Exit.INTERRUPTED
    assert "nobody sends event ask" in first
    assert "run asking: was unfinished and is cancelled" in rest
    (run,) = on_database("list", "-o", "json").json["runs"]
    assert (run["phase"], run["message"]) == ("Cancelled", "cancelled: the local session ended")


def test_a_session_takes_no_task_of_another_namespace(on_database: Cli, database_url: str, tmp_path: Path) -> None:
    other = folder(tmp_path, GPU)
    assert on_database("submit", other, "-n", "elsewhere").code == Exit.OK
    assert on_database("dev", "run", other, "--database-url", database_url).code == Exit.OK
    left = on_database("get", "one", "-n", "elsewhere", "-o", "json").json
    assert (left["run"]["phase"], left["run"]["waiting"]) == ("Running", "a worker (queue gpu)")


def test_documents_get_namespaces_of_the_session() -> None:
    documents: list[dict[str, Any]] = [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "b", "namespace": "n" * 63}},
        {"kind": "X"},
    ]
    shown = orjson.loads(orjson.dumps(marked(documents, "1f")))
    assert [each.get("metadata", {}).get("namespace") for each in shown] == ["default-1f", "n" * 48 + "-1f", None]
