"""``partita lint``: every problem of a manifest, found by the code that the operator runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli import options
from partita.cli.exits import Exit
from partita.cli.output import Format, print_json, stdout

if TYPE_CHECKING:
    from partita.cli.checks import Finding


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(rich_help_panel=options.TRY)(lint)


def lint(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML files; - reads standard input.")],
    output: options.Output = Format.TABLE,
) -> None:
    """Check manifests without a cluster or a database, and list every problem with its place."""
    from partita.cli.checks import check_file

    findings = [finding for file in files for finding in check_file(file)]
    if output is Format.JSON:
        print_json(findings)
    else:
        for finding in findings:
            _print(finding)
    if any(finding.problems for finding in findings):
        raise typer.Exit(Exit.USAGE)


def _print(finding: Finding) -> None:
    title = f"{finding.file}: document {finding.document}: {finding.kind} {finding.name}".rstrip()
    if not finding.problems:
        stdout.print(f"{title}: ok", markup=False, highlight=False)
    for problem in finding.problems:
        stdout.print(f"{title}: {problem}", markup=False, highlight=False)
