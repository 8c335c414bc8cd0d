"""``partita submit NAME --inputs FILE``: a run of one definition for each line of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from partita.cli import names
from partita.cli.connect import Target, database_settings, is_plugin
from partita.cli.exits import exit_code
from partita.cli.output import Format, note, print_json, print_table
from partita.domain.errors import InvalidError, Problem
from partita.domain.names import OBJECT

if TYPE_CHECKING:
    from partita.cli.inputs import Outcome

_SHOWN: Final = 100
"""Lines of a table; of more lines only those that were refused."""
_EVERY: Final = 10_000
"""Lines between two words of progress."""
_LONGEST_PREFIX: Final = 200
_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the command line says."""

    definition: str
    inputs: Path
    namespace: str
    key_prefix: str
    tags: Sequence[str]


def submit_inputs(target: Target, order: Order, output: Format) -> None:
    """Start the runs, print what became of each line, and exit with the code of the first refusal."""
    _check(target, order)
    outcome = asyncio.run(_submit(target, order))
    _show(outcome, output)
    words = f"{outcome.count('created'):,} created, {outcome.count('unchanged'):,} unchanged"
    note(f"{words}, {outcome.count('refused'):,} refused")
    if outcome.error is None:
        return
    first = next(each for each in outcome.results if each.result == "refused")
    note(f"line {first.line}: {first.error}")
    if outcome.stopped:
        again = (
            f"--idempotency-prefix {order.key_prefix}" if order.key_prefix else "--idempotency-prefix, from the start"
        )
        note(
            f"nothing was sent after it; what was refused may have been started; send the same file again with {again}"
        )
    raise typer.Exit(exit_code(outcome.error))


def _check(target: Target, order: Order) -> None:
    if target.names_cluster or is_plugin():
        problem = Problem("--inputs", "starts runs in a database only; expected --database-url or PARTITA_DATABASE_URL")
        raise InvalidError("submit", (problem,))
    names.checked("NAME", order.definition, OBJECT)
    prefix = order.key_prefix
    if len(prefix) > _LONGEST_PREFIX or not prefix.isprintable():
        problem = Problem("", f"expected one line of at most {_LONGEST_PREFIX} characters")
        raise InvalidError("--idempotency-prefix", (problem,))


async def _submit(target: Target, order: Order) -> Outcome:
    from partita.cli.inputs import Template, opened, submit_lines  # loads the engine, and help must not
    from partita.engine.engine import Engine

    template = Template(
        namespace=order.namespace or _NAMESPACE,
        definition=order.definition,
        key_prefix=order.key_prefix,
        tags=tuple(order.tags),
    )
    settings = database_settings(target.database_url)
    with opened(order.inputs) as lines:
        async with await Engine.open(settings, application="partita-cli") as engine:
            return await submit_lines(engine, template, lines, _progress)


def _progress(outcome: Outcome) -> None:
    if len(outcome.results) % _EVERY == 0:
        note(f"{len(outcome.results):,} lines, {outcome.count('refused'):,} refused")


def _show(outcome: Outcome, output: Format) -> None:
    if output is Format.JSON:
        print_json(outcome.results)
        return
    few = len(outcome.results) <= _SHOWN
    shown = [each for each in outcome.results if few or each.result == "refused"]
    rows = [(each.line, each.result, each.id, each.error) for each in shown[:_SHOWN]]
    if rows or few:
        print_table(("line", "result", "run id", "error"), rows, empty="no line holds an input; nothing to submit")
    if len(shown) > _SHOWN:
        note(f"{len(shown) - _SHOWN:,} more lines were refused: -o json has them all")
