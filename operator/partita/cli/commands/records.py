"""Commands that look into the database: history, definitions, queues, workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import orjson
import typer

from partita.cli import names, options
from partita.cli.connect import database_settings
from partita.cli.output import Format, age, note, print_json, print_table

if TYPE_CHECKING:
    from partita.store.database import Database
    from partita.store.views import DefinitionView, HistoryView, QueueView, WorkerView

T = TypeVar("T")
_Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Most lines.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (history, definitions, queues, workers):
        app.command(rich_help_panel=options.LOOK)(command)


def history(
    run: options.Run,
    namespace: options.Namespace = "",
    after: Annotated[int, typer.Option("--after", min=0, help="Only lines after this number.")] = 0,
    limit: _Limit = 1_000,
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Show what happened to a run, line by line, oldest first. The numbers grow and may leave some out."""
    from partita.cli.database import run_id
    from partita.store import reads

    async def work(database: Database) -> tuple[HistoryView, ...]:
        identity = await run_id(database, namespace, run)
        await reads.get_run(database, identity)  # an unknown run is an error, not an empty history
        return await reads.history(database, identity, after=after, limit=limit)

    lines = read(database_url, work)
    if output is Format.JSON:
        print_json(lines)
        return
    loops = {line.node for line in lines if line.index}
    rows = [
        (line.seq, _time(line.at), line.event, _place(line, loops), line.attempt or "", _what(line)) for line in lines
    ]
    print_table(("#", "time", "event", "node", "attempt", "by and why"), rows, empty="nothing has happened after that")
    if len(lines) == limit:
        note(f"more: --after {lines[-1].seq}")


def definitions(
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            show_default=False,
            callback=names.namespace,
            help="Only this namespace; all without it.",
        ),
    ] = "",
    limit: _Limit = 1_000,
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """List the definitions, each with its newest version and the one that new runs take."""
    from partita.store import reads

    async def work(database: Database) -> tuple[DefinitionView, ...]:
        return await reads.definitions(database, namespace or None, limit=limit)

    found = read(database_url, work)
    if output is Format.JSON:
        print_json(found)
        return
    rows = [(each.namespace, each.name, each.version, each.deployed or "", age(each.created_at)) for each in found]
    print_table(("namespace", "name", "version", "deployed", "age"), rows, empty="none; try: partita submit FILE")


def queues(output: options.Output = Format.TABLE, database_url: options.DatabaseUrl = "") -> None:
    """List the queues: tasks that are ready, how long the oldest waits, what runs, and who serves it."""
    from partita.store import reads

    async def work(database: Database) -> tuple[QueueView, ...]:
        return await reads.queues(database)

    found = read(database_url, work)
    if output is Format.JSON:
        print_json(found)
        return
    rows = [(each.queue, each.depth, age(each.oldest_at), each.running, each.workers) for each in found]
    print_table(("queue", "ready", "oldest", "running", "workers"), rows, empty="no task is ready and no worker lives")
    for each in found:
        if each.depth and not each.workers:
            note(f"queue {each.queue}: no worker serves it; try: partita worker MODULE:app --queue {each.queue}")


def workers(output: options.Output = Format.TABLE, database_url: options.DatabaseUrl = "") -> None:
    """List the worker processes: whether they live, what they serve and how much they hold."""
    from partita.store import reads

    async def work(database: Database) -> tuple[WorkerView, ...]:
        return await reads.workers(database)

    found = read(database_url, work)
    if output is Format.JSON:
        print_json(found)
        return
    columns = ("worker", "host", "state", "held", "slots", "queues", "task types", "age")
    rows = [
        (
            *(each.id, each.host, _state(each), each.held, each.slots),
            *(",".join(each.queues), ",".join(each.types), age(each.started_at)),
        )
        for each in found
    ]
    print_table(columns, rows, empty="no worker; try: partita worker MODULE:app")


def read(database_url: str, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run one command's work on the database, in a loop of its own."""
    from partita.engine.requests import PROTOCOL
    from partita.store.database import Database
    from partita.store.migrations import require_current, require_protocol

    settings = database_settings(database_url)

    async def main() -> T:
        async with await Database.open(settings.database) as database:
            await require_current(database)
            await require_protocol(database, PROTOCOL)
            return await work(database)

    return asyncio.run(main())


def _time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"


def _place(line: HistoryView, loops: set[str]) -> str:
    """The node, with the item of a loop; the loop as a whole has no index."""
    return f"{line.node}[{line.index}]" if line.index >= 0 and line.node in loops else line.node


def _what(line: HistoryView) -> str:
    error = f"{line.error.type}: {line.error.message}" if line.error is not None else ""
    details = orjson.dumps(line.details.value).decode() if line.details is not None else ""
    return "  ".join(part for part in (line.who, error or details) if part)


def _state(worker: WorkerView) -> str:
    return "dead" if not worker.alive else "stopping" if worker.draining else "alive"
