"""The command doctor: whether an installation works."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli import options
from partita.cli.connect import Target, database_settings, settings_for
from partita.cli.exits import Exit
from partita.cli.output import Format, print_json, print_table

if TYPE_CHECKING:
    from partita.cli.doctoring import Finding
    from partita.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(rich_help_panel=options.ADMINISTRATION)(doctor)


def doctor(
    wait: Annotated[int, typer.Option("--wait", min=0, metavar="SECONDS", help="Look again, for so long.")] = 0,
    database_only: Annotated[bool, typer.Option("--database-only", help="Look at no cluster.")] = False,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", show_default=False, help="Namespace of the operator.")
    ] = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Check that database, kinds, engine and leader are well; exits 5 when one is not. Changes nothing.

    The database is looked at where one is named.
    """
    import dataclasses

    from partita.cli.doctoring import until_well

    settings = database_settings(database_url) if database_only else settings_for(Target(database_url=database_url))

    async def look() -> list[Finding]:
        return await _look(settings, database_only, namespace, kubeconfig, context)

    found = asyncio.run(until_well(look, wait))
    if output is Format.JSON:
        print_json([dataclasses.asdict(finding) for finding in found])
    else:
        rows = [(finding.check, "ok" if finding.ok else "fails", finding.words) for finding in found]
        print_table(("check", "result", "what was found"), rows, empty="nothing to check")
    if not all(finding.ok for finding in found):
        raise typer.Exit(Exit.UNAVAILABLE)


async def _look(
    settings: Settings, database_only: bool, namespace: str, kubeconfig: str, context: str
) -> list[Finding]:
    from partita.cli.doctoring import Finding, look_at_cluster, look_at_database
    from partita.domain.errors import UnavailableError
    from partita.kube.client import KubeClient
    from partita.kube.connection import load_connection, own_namespace

    found = await look_at_database(settings) if settings.database.url else []
    if database_only:
        return found
    path = Path(kubeconfig) if kubeconfig else None
    try:
        load_connection(path, context or None)
    except UnavailableError as error:
        return [*found, Finding("cluster", False, str(error))]
    where = namespace or os.environ.get("PARTITA_OPERATOR_NAMESPACE") or own_namespace() or settings.operator.namespace
    async with KubeClient(lambda: load_connection(path, context or None)) as client:
        return [*found, *await look_at_cluster(client, where)]
