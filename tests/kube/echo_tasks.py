"""The task ``echo`` for a worker that is a process of its own: ``partita worker tests.kube.echo_tasks:app``."""

from __future__ import annotations

from tests.kube.operated import echo_tasks

app = echo_tasks()
