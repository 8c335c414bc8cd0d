"""``partita dev run``: a manifest's runs on this machine alone."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated

import typer

from partita.cli import options
from partita.cli.commands.runs import exit_by_result
from partita.cli.documents import pairs, read_documents
from partita.cli.names import checked
from partita.cli.output import Format, print_json
from partita.domain.errors import InvalidError, Problem
from partita.domain.names import SIGNAL_NAME


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(help="Try workflows without a cluster.")
    group.callback()(_group)
    group.command()(run)
    app.add_typer(group, name="dev", no_args_is_help=True, rich_help_panel=options.TRY)


def _group() -> None:
    """Keeps ``run`` a word of its own although it is the only one."""


def run(
    file: options.Manifest,
    event: Annotated[
        list[str] | None,
        typer.Option("--event", metavar="NAME=JSON", help="Sent when a run waits for it; repeatable."),
    ] = None,
    tasks: Annotated[
        str,
        typer.Option("--tasks", metavar="MODULE:APP", show_default=False, help="Without it tasks.py beside the file."),
    ] = "",
    output: options.Output = Format.TABLE,
    database_url: Annotated[
        str,
        typer.Option("--database-url", show_default=False, help="PostgreSQL to use instead of the embedded one."),
    ] = "",
) -> None:
    """Run a manifest with an embedded PostgreSQL and a worker in this process, and draw it live."""
    from partita.cli import apart, local

    documents = read_documents(file)
    if not any(document.get("kind") == "WorkflowRun" for document in documents):
        problem = Problem("", "holds no WorkflowRun; expected one beside the definition")
        raise InvalidError(str(file), (problem,), hint="partita lint FILE")
    events = [(checked("--event", name, SIGNAL_NAME), value) for name, value in pairs(event or (), "--event")]
    registry = local.find_tasks(tasks, file)
    if not database_url:
        documents = apart.marked(documents, secrets.token_hex(4))
    with local.local_database(database_url) as settings:
        details = asyncio.run(local.run_documents(settings, registry, documents, events, output))
    if output is Format.JSON:
        print_json(details)
    for detail in details:
        exit_by_result(detail)
