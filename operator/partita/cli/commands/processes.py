"""Commands that are the long-running processes: operator and worker."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from partita.cli import logs, names, options
from partita.cli.connect import database_settings
from partita.domain.names import NAMESPACE_NAME, QUEUE_NAME

T = TypeVar("T")


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (worker, operator):
        app.command(rich_help_panel=options.ADMINISTRATION)(command)


def worker(
    app: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:APP]", help="Where the tasks are: module:app, or a module with @task functions."
        ),
    ],
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", callback=names.repeated("--queue", QUEUE_NAME), help="Queue to serve; repeatable."),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "-n",
            "--namespace",
            callback=names.repeated("--namespace", NAMESPACE_NAME),
            help="Only these; repeatable.",
        ),
    ] = None,
    slots: Annotated[int, typer.Option("--slots", min=0, help="Tasks at a time; 0 takes PARTITA_WORKER_SLOTS.")] = 0,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Execute tasks until stopped; SIGTERM lets running tasks finish and hands the others back."""
    from partita.worker import load
    from partita.worker.process import exit_process, serve

    sys.path.insert(0, str(Path.cwd()))
    settings = database_settings(database_url)
    chosen: dict[str, object] = {}
    if queue:
        chosen["queues"] = tuple(queue)
    if namespace:
        chosen["namespaces"] = tuple(namespace)
    if slots:
        chosen["slots"] = slots
    settings = dataclasses.replace(settings, worker=dataclasses.replace(settings.worker, **chosen))  # type: ignore[arg-type]  # names above are fields
    exit_process(_run(serve(settings, load(app))))


def operator(
    kubeconfig: options.Kubeconfig = "",
    database_url: options.DatabaseUrl = "",
    health_port: Annotated[int, typer.Option("--health-port", help="Port of the probes; 0 serves none.")] = 0,
    health_host: Annotated[str, typer.Option("--health-host", help="Address of the probes.")] = "127.0.0.1",
) -> None:
    """Reconcile the objects of a cluster; any number of replicas, one of which leads."""
    from partita.collector import calm
    from partita.kube.connection import load_connection
    from partita.kube.operator import run_operator
    from partita.kube.options import OperatorOptions

    settings = database_settings(database_url)
    path = Path(kubeconfig) if kubeconfig else None
    load_connection(path)  # credentials that are not there are said at once; an API that is away is waited for
    options_ = OperatorOptions(kubeconfig=path, health_host=health_host, health_port=health_port)
    calm()
    _run(run_operator(settings, options_))


def _run(process: Coroutine[Any, Any, T]) -> T:
    """Run a long-running process on the fast loop where there is one, with a log that a person can read."""
    logs.begin(os.environ.get("PARTITA_LOG_LEVEL", "INFO").upper())
    try:
        import uvloop
    except ImportError:
        return asyncio.run(process)
    return uvloop.run(process)
