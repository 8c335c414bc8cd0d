"""Dead letters: listed, driven again, deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncpg
import pytest

from partita.cli.exits import Exit
from partita.engine.engine import Engine
from partita.settings import Settings
from tests import postgres
from tests.cli.commands import Cli
from tests.engine.support import connected
from tests.waiting import until

MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: nap}
spec:
  nodes:
    - {name: nap, wait: {duration: 1h}}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: first}
spec: {definitionRef: {name: nap}}
"""
KILL = """
UPDATE partita.timers SET dead_at = clock_timestamp() - interval '2 hours', fire_at = 'infinity', failures = 20,
       last_error = 'division by zero'
"""
LETTER = """
INSERT INTO partita.run_inbox (run_id, kind, body, dead_at, failures, last_error)
VALUES ($1, 'signal', '{}', clock_timestamp(), 20, 'no such run') RETURNING id
"""


@pytest.fixture
def run_id(on_database: Cli, tmp_path: Path) -> str:
    """A run that waits for a timer."""
    file = tmp_path / "nap.yaml"
    file.write_text(MANIFEST)
    done = on_database("submit", str(file), "-o", "json")
    assert done.code == Exit.OK, done.err
    return str(done.json[1]["id"])


def sql(url: str, statement: str, *values: object) -> Any:
    async def work() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement, *values)
        finally:
            await connection.close()

    return postgres.run(work())


def test_none(on_database: Cli) -> None:
    shown = on_database("dead-letters", "list")
    assert (shown.code, shown.out, shown.err) == (Exit.OK, "", "none: nothing was given up\n")
    assert on_database("dead-letters", "list", "-o", "json").json == []
    assert on_database("dead-letters", "retry", "--all").err == "0 driven again\n"


def test_a_timer_is_listed_and_driven_again(on_database: Cli, run_id: str, database_url: str) -> None:
    sql(database_url, KILL)
    (found,) = on_database("dead-letters", "list", "-o", "json").json
    assert {**found, "deadAt": ""} == {
        "id": f"{run_id}/wait/nap/0", "runId": run_id, "what": "wait", "node": "nap", "createdAt": None, "deadAt": "",
        "failures": 20, "error": "division by zero",
    }  # fmt: skip
    words = on_database("dead-letters", "list").out.split("\n")[1].split()
    assert words[:6] == [f"{run_id}/wait/nap/0", run_id, "wait", "nap", "2h", "20"]
    assert on_database("dead-letters", "retry", found["id"]).err == "1 driven again\n"
    assert sql(database_url, "SELECT fire_at <= clock_timestamp() AND failures = 0 FROM partita.timers")
    again = on_database("dead-letters", "retry", found["id"])
    assert again.code == Exit.NOT_FOUND
    assert "is not among the dead letters" in again.err


def test_a_frozen_timer_stays_frozen(on_database: Cli, run_id: str, database_url: str) -> None:
    assert on_database("suspend", run_id).code == Exit.OK
    sql(database_url, KILL)
    assert on_database("dead-letters", "retry", "--all").err == "1 driven again\n"
    assert sql(database_url, "SELECT fire_at = 'infinity' AND dead_at IS NULL FROM partita.timers")


def test_a_message_is_deleted_and_a_timer_is_not(on_database: Cli, run_id: str, database_url: str) -> None:
    sql(database_url, KILL)
    number = sql(database_url, LETTER, run_id)
    kinds = [(letter["id"], letter["what"]) for letter in on_database("dead-letters", "list", "-o", "json").json]
    assert kinds == [(f"{run_id}/wait/nap/0", "wait"), (str(number), "signal")]
    refused = on_database("dead-letters", "delete", f"{run_id}/wait/nap/0")
    assert refused.code == Exit.USAGE
    assert "is no message's number; try: partita dead-letters retry ID, or partita cancel RUN" in refused.err
    done = on_database("dead-letters", "delete", str(number), "7777777", "-o", "json")
    assert (done.code, done.json) == (Exit.NOT_FOUND, {"done": [str(number)], "notDead": ["7777777"]})
    assert sql(database_url, "SELECT count(*) FROM partita.run_inbox") == 0


def test_those_of_one_run(on_database: Cli, run_id: str, database_url: str) -> None:
    other = "01890000-0000-7000-8000-000000000000"
    sql(database_url, KILL)
    number = sql(database_url, LETTER, other)
    assert [each["id"] for each in on_database("dead-letters", "list", "--run", other, "-o", "json").json] == [
        str(number)
    ]
    done = on_database("dead-letters", "retry", "--run", other, "-o", "json").json
    assert done == {"done": [str(number)], "notDead": []}
    assert [each["runId"] for each in on_database("dead-letters", "list", "-o", "json").json] == [run_id]


@pytest.mark.parametrize(
    "words", [("retry",), ("retry", "--all", "1"), ("retry", "--all", "--run", "x"), ("retry", "one"), ("delete", "-1")]
)
def test_what_is_not_said_is_not_guessed(on_database: Cli, words: tuple[str, ...]) -> None:
    assert on_database("dead-letters", *words).code == Exit.USAGE


async def test_a_message_that_is_driven_again_is_delivered(settings: Settings) -> None:
    """The engine gives a message up that it cannot apply, and applies it when the cause is gone."""
    from partita.engine.duties import Duties  # noqa: PLC0415  # of this test alone
    from partita.engine.supervisor import Supervisor  # noqa: PLC0415  # of this test alone
    from partita.store import dead  # noqa: PLC0415  # of this test alone
    from tests.engine.support import APPROVAL, signal, start, status  # noqa: PLC0415  # of this test alone

    async with await Engine.open(settings) as engine, connected(settings) as connection:
        run = await start(engine, APPROVAL)
        async with connection.transaction():
            await engine.signal_in(connection, run, signal("s1", payload={"by": "me"}))
        await connection.execute("UPDATE partita.run_inbox SET dead_at = clock_timestamp(), failures = 20")
        duties, supervisor = Duties(engine), Supervisor()
        supervisor.start(*duties.services)
        try:
            (letter,) = await dead.dead_letters(engine.database)
            assert await status(connection, run) == "Running"
            assert await dead.retry(engine.database, [letter.id]) == {letter.id}

            async def succeeded() -> bool:
                return await status(connection, run) == "Succeeded"

            await until(succeeded, what="the run to succeed")
        finally:
            await supervisor.stop()
        assert await dead.dead_letters(engine.database) == ()
