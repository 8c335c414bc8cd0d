"""The application: assembles the commands and turns every error into one line and an exit code."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from partita.cli import streams
from partita.cli.commands import (
    administration,
    controls,
    dead_letters,
    dev,
    doctor,
    lint,
    listing,
    processes,
    records,
    runs,
)
from partita.cli.connect import is_plugin
from partita.cli.exits import Exit, epilog, exit_code, partita_error
from partita.cli.output import stderr
from partita.domain.errors import InvalidError, PartitaError

_ABOUT = """Durable workflows for Kubernetes with PostgreSQL as the only state store.

Commands about runs talk to the database of --database-url or PARTITA_DATABASE_URL, and without one to the cluster of
the kubeconfig; --kubeconfig and --context always mean the cluster."""


def build() -> typer.Typer:
    """The command tree."""
    app = typer.Typer(
        name="partita",
        epilog=epilog(),
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=_ABOUT if not is_plugin() else _ABOUT.splitlines()[0])(_options)
    runs.register(app)
    listing.register(app)
    controls.register(app)
    lint.register(app)
    doctor.register(app)
    if not is_plugin():  # the plugin needs no database, and these are about one
        dev.register(app)
        records.register(app)
        administration.register(app)
        dead_letters.register(app)
        processes.register(app)
    return app


def main() -> None:
    """Entry point of ``partita`` and ``kubectl partita``."""
    try:
        with streams.guarded():
            build()(prog_name="kubectl partita" if is_plugin() else "partita")
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # a defect must not look like a failed run to a script
        known = partita_error(error)
        if known is None:
            traceback.print_exc()
            sys.exit(Exit.DEFECT)
        if isinstance(known, streams.OutputError) and not known.has_reader:
            sys.exit(Exit.OK)
        _print(known)
        sys.exit(exit_code(known))


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed  # noqa: PLC0415  # slow, and for this option alone

        typer.echo(f"partita {installed('partita')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and exit.")
    ] = False,
) -> None:
    del version  # its callback has answered before a command is missed


def _print(error: PartitaError) -> None:
    """One line an error; a list of problems takes a line each, so that every one is read."""
    hint = f"kubectl {error.hint}" if is_plugin() and error.hint.startswith("partita ") else error.hint
    if isinstance(error, InvalidError) and len(error.problems) > 1:
        _line(f"error: {error.subject}: {len(error.problems)} problems")
        for problem in error.problems:
            _line(f"  {problem}")
        if hint:
            _line(f"try: {hint}")
        return
    _line(f"error: {error.message}" + (f"; try: {hint}" if hint else ""))


def _line(text: str) -> None:
    stderr.print(text, markup=False, highlight=False)
