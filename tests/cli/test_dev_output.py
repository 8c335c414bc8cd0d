"""What ``partita dev run`` tells in a pipe: the picture, the words of its tasks, and what it waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from partita.cli.exits import Exit

MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: small}
spec:
  nodes:
    - name: ask
      waitForEvent: {timeout: 1s, onTimeout: {next: [work]}}
    - name: work
      task: {type: work}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: small-1}
spec: {definitionRef: {name: small}}
"""
TASKS = """
from partita.worker import TaskContext, Tasks

app = Tasks()

@app.task("work")
async def work(ctx: TaskContext) -> None:
    ctx.log.info("begins to work")
    raise RuntimeError("the drill broke")
"""


def test_a_pipe_gets_whole_lines_the_tasks_words_and_what_is_missing(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(MANIFEST)
    (tmp_path / "tasks.py").write_text(TASKS)
    command = [str(Path(sys.executable).parent / "partita"), "dev", "run", "small.yaml", "--database-url", database_url]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == Exit.RUN_FAILED, done.stderr
    assert done.stdout.startswith("small-1 ")
    assert done.stdout.endswith("\n")
    assert done.stderr.count("run small-1: nobody sends event ask; try: --event ask='JSON'") == 1
    assert "INFO partita.task.work: begins to work" in done.stderr
    assert 'raise RuntimeError("the drill broke")' in done.stderr
