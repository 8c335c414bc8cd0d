"""Commands about the database itself: migrate, partitions."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from partita.cli import options
from partita.cli.connect import database_settings
from partita.cli.exits import Exit
from partita.cli.output import Format, note, print_json, print_table

if TYPE_CHECKING:
    from partita.settings import Settings
    from partita.store.migrations import MigrationState
    from partita.store.partitions import MonthStatus, PartitionStatus


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(rich_help_panel=options.ADMINISTRATION)(migrate)
    group = typer.Typer(help="Month partitions: make them in advance, drop old ones, look at them.")
    for command in (ensure, drop, status):
        group.command()(command)
    app.add_typer(group, name="partitions", no_args_is_help=True, rich_help_panel=options.ADMINISTRATION)


def migrate(
    wait: Annotated[bool, typer.Option("--wait", help="Wait up to five minutes for the database.")] = False,
    with_roles: Annotated[
        bool, typer.Option("--roles", help="Also make the roles for coordinators and for reads, with their options.")
    ] = False,
    accept_newer: Annotated[
        bool,
        typer.Option(
            "--accept-newer", help="Leave a schema that a newer release has migrated as it is, if that can be."
        ),
    ] = False,
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Bring the schema up to this version, with what older rows lack, and make the next months' partitions.

    Safe to run any number of times, and while runs are in flight.
    """
    from partita.store import list_fill, migrations, partitions, roles

    settings = database_settings(database_url)

    async def work() -> tuple[tuple[MigrationState, ...], tuple[str, ...], tuple[str, ...]]:
        try:
            applied = await migrations.migrate(settings.database, wait_ms=300_000 if wait else None)
        except migrations.SchemaNewerError as error:
            if not accept_newer:
                raise
            await _require_protocol(settings)
            note(f"{error.message}; it is left as it is")
            return (), (), ()
        made = await partitions.ensure(settings)
        await list_fill.fill(migrations.direct(settings.database))
        return applied, made, await roles.apply(settings.database) if with_roles else ()

    applied, made, new = asyncio.run(work())
    if output is Format.JSON:
        states = [dataclasses.asdict(state) for state in applied]
        print_json({"applied": states, "partitions": list(made), "roles": list(new)})
        return
    schema = settings.database.schema
    rows = [(state.version, state.name, state.applied_at) for state in applied]
    print_table(("version", "migration", "applied at"), rows, empty=f"schema {schema}: nothing to do, it is current")
    if made:
        note(f"schema {schema}: made {len(made)} partitions")
    if new:
        note(f"made the roles {' and '.join(new)}; try: psql -c '\\password {new[0]}', and log in as it")


async def _require_protocol(settings: Settings) -> None:
    """Raise OutdatedError when the schema cannot be worked on by this program."""
    from partita.engine.requests import PROTOCOL
    from partita.store.database import Database
    from partita.store.migrations import direct, require_protocol

    async with await Database.open(direct(settings.database)) as database:
        await require_protocol(database, PROTOCOL)


def ensure(output: options.Output = Format.TABLE, database_url: options.DatabaseUrl = "") -> None:
    """Make the missing partitions of this month and the next ones."""
    from partita.store import partitions

    made = asyncio.run(partitions.ensure(database_settings(database_url)))
    if output is Format.JSON:
        print_json({"made": list(made)})
        return
    print_table(("partition",), [(name,) for name in made], empty="nothing to do: every month ahead has its partitions")


def drop(
    compact: Annotated[
        bool,
        typer.Option("--compact", help="Of a month with at most 1,000 unfinished runs, drop all but these."),
    ] = False,
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Drop months older than PARTITA_RETENTION_MONTHS; one with unfinished runs is kept or compacted, and said."""
    from partita.store import retention

    report = asyncio.run(retention.drop(database_settings(database_url), compact=compact))
    if output is Format.JSON:
        kept = [{"month": str(month), "reason": reason} for month, reason in report.kept.items()]
        compacted = [{"month": str(month), "unfinished": runs} for month, runs in report.compacted.items()]
        dropped = [str(month) for month in report.dropped]
        print_json({"dropped": dropped, "compacted": compacted, "kept": kept, "floor": report.floor})
        return
    rows = [(str(month), "dropped", "") for month in report.dropped]
    rows += [(str(month), "compacted", f"{runs} unfinished run(s) stay") for month, runs in report.compacted.items()]
    rows += [(str(month), "kept", reason) for month, reason in report.kept.items()]
    print_table(("month", "result", "reason"), rows, empty="nothing to do: no month is old enough")


def status(output: options.Output = Format.TABLE, database_url: options.DatabaseUrl = "") -> None:
    """Show every month: runs and rows (estimated), size, unfinished runs, and whether the months ahead are there."""
    from partita.store import partitions
    from partita.store.database import Database

    settings = database_settings(database_url)

    async def work() -> PartitionStatus:
        async with await Database.open(settings.database) as database:
            return await partitions.status(database)

    found = asyncio.run(work())
    if output is Format.JSON:
        months = [{**dataclasses.asdict(one), "month": str(one.month)} for one in found.months]
        print_json({**dataclasses.asdict(found), "months": months})
    else:
        rows = [
            (str(one.month), f"~{one.runs}", f"~{one.rows}", _size(one.bytes), _unfinished(one), ", ".join(one.missing))
            for one in found.months
        ]
        columns = ("month", "runs", "rows", "size", "unfinished", "missing tables")
        print_table(columns, rows, empty="no partitions; try: partita partitions ensure")
        note(f"{found.ahead} months ahead; runs from before {found.floor:%Y-%m-%d} are refused")
        if found.left:
            note(f"left by a drop that was broken off: {', '.join(found.left)}; try: partita partitions drop")
    if found.ahead < 1:
        note("no month ahead: runs cannot start next month; try: partita partitions ensure")
        raise typer.Exit(Exit.CONFLICT)


def _unfinished(month: MonthStatus) -> str:
    return "1000 or more" if month.unfinished >= 1_000 else str(month.unfinished)


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
