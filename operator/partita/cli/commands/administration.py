"""Commands about the database itself: migrate, partitions."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated

import typer

from partita.cli import options
from partita.cli.connect import Target, settings_for
from partita.cli.exits import Exit
from partita.cli.output import Format, note, print_json, print_table
from partita.domain.errors import InvalidError, Problem
from partita.settings import Settings
from partita.store import migrations, retention
from partita.store import partitions as months
from partita.store.database import Database


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(migrate)
    group = typer.Typer(help="Month partitions: make them in advance, drop old ones, look at them.")
    for command in (ensure, drop, status):
        group.command()(command)
    app.add_typer(group, name="partitions", no_args_is_help=True)


def migrate(
    wait: Annotated[bool, typer.Option("--wait", help="Wait up to five minutes for the database.")] = False,
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Bring the schema up to this version and make the next months' partitions; safe to run any number of times."""
    settings = _settings(database_url)

    async def work() -> tuple[tuple[migrations.MigrationState, ...], tuple[str, ...]]:
        applied = await migrations.migrate(settings.database, wait_ms=300_000 if wait else None)
        return applied, await months.ensure(settings)

    applied, made = asyncio.run(work())
    if output is Format.JSON:
        print_json({"applied": [dataclasses.asdict(state) for state in applied], "partitions": list(made)})
        return
    rows = [(state.version, state.name, state.applied_at) for state in applied]
    schema = settings.database.schema
    print_table(("version", "migration", "applied at"), rows, empty=f"schema {schema}: nothing to do, it is current")
    if made:
        note(f"schema {schema}: made {len(made)} partitions")


def ensure(output: options.Output = Format.TABLE, database_url: options.DatabaseUrl = "") -> None:
    """Make the missing partitions of this month and the next ones."""
    made = asyncio.run(months.ensure(_settings(database_url)))
    if output is Format.JSON:
        print_json({"made": list(made)})
        return
    print_table(("partition",), [(name,) for name in made], empty="nothing to do: every month ahead has its partitions")


def drop(
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Drop months older than PARTITA_RETENTION_MONTHS; a month with an unfinished run is kept, and said."""
    report = asyncio.run(retention.drop(_settings(database_url)))
    if output is Format.JSON:
        kept = [{"month": str(month), "reason": reason} for month, reason in report.kept.items()]
        print_json({"dropped": [str(month) for month in report.dropped], "kept": kept, "floor": report.floor})
        return
    rows = [(str(month), "dropped", "") for month in report.dropped]
    rows += [(str(month), "kept", reason) for month, reason in report.kept.items()]
    print_table(("month", "result", "reason"), rows, empty="nothing to do: no month is old enough")


def status(output: options.Output = Format.TABLE, database_url: options.DatabaseUrl = "") -> None:
    """Show every month: rows and size, unfinished runs, and whether the months ahead are there."""
    settings = _settings(database_url)

    async def work() -> months.PartitionStatus:
        async with await Database.open(settings.database) as database:
            return await months.status(database)

    found = asyncio.run(work())
    if output is Format.JSON:
        print_json(found)
    else:
        rows = [
            (str(month.month), month.rows, _size(month.bytes), month.unfinished, ", ".join(month.missing))
            for month in found.months
        ]
        columns = ("month", "rows (estimated)", "size", "unfinished", "missing")
        print_table(columns, rows, empty="no partitions; try: partita partitions ensure")
        note(f"{found.ahead} months ahead; runs from before {found.floor:%Y-%m-%d} are refused")
    if found.ahead < 1:
        note("no month ahead: runs cannot start next month; try: partita partitions ensure")
        raise typer.Exit(Exit.CONFLICT)


def _settings(database_url: str) -> Settings:
    settings = settings_for(Target(database_url=database_url))
    if not (settings.database.url or settings.database.migrations_url):
        problem = Problem("--database-url", "is not set; expected postgresql://user:password@host/database")
        raise InvalidError("database", (problem,), hint="export PARTITA_DATABASE_URL=…")
    return settings


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
