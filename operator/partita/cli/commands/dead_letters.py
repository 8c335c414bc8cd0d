"""Dead letters: messages between runs and timers that were given up, listed and driven again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from partita.cli import names, options
from partita.cli.commands.records import read
from partita.cli.exits import Exit
from partita.cli.names import is_run_id
from partita.cli.output import Format, age, note, print_json, print_table
from partita.domain.errors import InvalidError, Problem
from partita.domain.places import shortened

if TYPE_CHECKING:
    from partita.store.database import Database
    from partita.store.dead import DeadLetter, TimerId

_OfRun = Annotated[
    str,
    typer.Option("--run", show_default=False, callback=names.optional_run, help="Only those of this run, by its id."),
]
_Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="As listed; repeatable.", show_default=False)]
_Some = Annotated[list[str], typer.Argument(metavar="ID", help="As listed; repeatable.")]
_MOST = 10_000


def register(app: typer.Typer) -> None:
    """Add the command group to the application."""
    group = typer.Typer(help="Messages and timers that were given up after too many failures.")
    group.command("list")(list_letters)
    group.command()(retry)
    group.command()(delete)
    app.add_typer(group, name="dead-letters", no_args_is_help=True, rich_help_panel=options.ADMINISTRATION)


def list_letters(
    run: _OfRun = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=_MOST, help="Most lines.")] = 100,
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """List what was given up, the oldest first: the run, what it is, how often it failed and why."""
    found = _letters(database_url, run, limit)
    if output is Format.JSON:
        print_json([_record(letter) for letter in found])
        return
    columns = ("id", "run id", "what", "node", "dead for", "failures", "error")
    print_table(columns, [_row(letter) for letter in found], empty="none: nothing was given up")
    if len(found) == limit:
        note(f"there may be more: --limit {min(2 * limit, _MOST)}")


def retry(
    letters: _Ids = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that is listed.")] = False,
    run: _OfRun = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Drive what was given up again, at once and with a new account of failures: these, or --run, or --all."""
    if bool(letters) + everything + bool(run) != 1:
        raise InvalidError(
            "dead-letters retry", (Problem("", "expected the ids of some, or --run RUN, or --all"),), hint="--help"
        )
    chosen = [_id(text) for text in letters or ()]

    async def work(database: Database) -> list[int | TimerId]:
        from partita.store import dead

        wanted = chosen or [letter.id for letter in await dead.dead_letters(database, _run(run), limit=_MOST)]
        done = await dead.retry(database, wanted)
        return [letter for letter in wanted if letter in done]

    _say(read(database_url, work), chosen, output, "driven again")


def delete(
    letters: _Some,
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
) -> None:
    """Forget messages that can never be applied. What they would have told their runs is lost."""
    chosen = [_message(text) for text in letters]

    async def work(database: Database) -> list[int | TimerId]:
        from partita.store import dead

        done = await dead.delete(database, chosen)
        return [letter for letter in chosen if letter in done]

    _say(read(database_url, work), chosen, output, "deleted")


def _letters(database_url: str, run: str, limit: int) -> tuple[DeadLetter, ...]:
    async def work(database: Database) -> tuple[DeadLetter, ...]:
        from partita.store import dead

        return await dead.dead_letters(database, _run(run), limit=limit)

    return read(database_url, work)


def _say(done: list[int | TimerId], chosen: list[int] | list[int | TimerId], output: Format, what: str) -> None:
    """Say what was done; an id that is not dead is an error of its own, after the others were done."""
    missing = [_text(letter) for letter in chosen if letter not in done]
    if output is Format.JSON:
        print_json({"done": [_text(letter) for letter in done], "notDead": missing})
    else:
        note(f"{len(done)} {what}")
    for text in missing:
        note(f"{text}: is not among the dead letters; try: partita dead-letters list")
    if missing:
        raise typer.Exit(Exit.NOT_FOUND)


def _run(text: str) -> UUID | None:
    return UUID(text) if text else None


def _text(letter: int | TimerId) -> str:
    """A letter's id as it is listed and typed: a number, or run/kind/node/index."""
    return str(letter) if isinstance(letter, int) else f"{letter.run_id}/{letter.kind}/{letter.node}/{letter.index}"


def _id(text: str) -> int | TimerId:
    from partita.store.dead import TimerId

    parts = text.split("/")
    if len(parts) == 4 and is_run_id(parts[0]) and parts[3].removeprefix("-").isdecimal():
        return TimerId(run_id=UUID(parts[0]), kind=parts[1], node=parts[2], index=int(parts[3]))
    return _message(text)


def _message(text: str) -> int:
    """The number of a message; a timer cannot be deleted, since its run would wait for ever."""
    if text.isdecimal() and text.isascii() and len(text) < 19:
        return int(text)
    words = f"{shortened(text)!r} is no message's number"
    hint = "partita dead-letters retry ID, or partita cancel RUN" if "/" in text else "partita dead-letters list"
    raise InvalidError("ID", (Problem("", words),), hint=hint)


def _row(letter: DeadLetter) -> tuple[object, ...]:
    return (
        _text(letter.id), letter.run_id, letter.what, letter.node, age(letter.dead_at), letter.failures, letter.error,
    )  # fmt: skip


def _record(letter: DeadLetter) -> dict[str, object]:
    names = ("run_id", "what", "node", "created_at", "dead_at", "failures", "error")
    values = {name: getattr(letter, name) for name in names}
    camel = {"run_id": "runId", "created_at": "createdAt", "dead_at": "deadAt"}
    return {"id": _text(letter.id), **{camel.get(name, name): value for name, value in values.items()}}
