"""The application: assembles the commands and turns every error into one line and an exit code."""

from __future__ import annotations

import sys

import typer

from partita.cli.commands import administration, controls, dev, lint, processes, runs
from partita.cli.connect import is_plugin
from partita.cli.exits import epilog, exit_code
from partita.cli.output import stderr
from partita.domain.errors import InvalidError, PartitaError


def build() -> typer.Typer:
    """The command tree."""
    app = typer.Typer(
        name="partita",
        help="Durable workflows for Kubernetes with PostgreSQL as the only state store.",
        epilog=epilog(),
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    runs.register(app)
    controls.register(app)
    lint.register(app)
    dev.register(app)
    if not is_plugin():  # the plugin needs no database, and these are about one
        administration.register(app)
        processes.register(app)
    return app


def main() -> None:
    """Entry point of ``partita`` and ``kubectl partita``."""
    try:
        build()()
    except PartitaError as error:
        _print(error)
        sys.exit(exit_code(error))
    except BrokenPipeError:
        sys.exit(0)


def _print(error: PartitaError) -> None:
    """One line an error; a list of problems takes a line each, so that every one is read."""
    if isinstance(error, InvalidError) and len(error.problems) > 1:
        stderr.print(f"error: {error.subject}: {len(error.problems)} problems", markup=False, highlight=False)
        for problem in error.problems:
            stderr.print(f"  {problem}", markup=False, highlight=False)
        if error.hint:
            stderr.print(f"try: {error.hint}", markup=False, highlight=False)
        return
    stderr.print(f"error: {error}", markup=False, highlight=False)
