"""docs/security.md says where data and secrets end up: looked for in all of these places after real runs."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from partita.kube.resources import RUNS
from partita.settings import Settings
from partita.worker import TaskError, Tasks
from tests.kube.operated import APPROVAL, Namespace, definition, operating, operator_settings, run, task, working
from tests.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
PASSWORD = "mark-of-the-url"
MARKS = {
    "input of a run": "mark-of-the-input",
    "inputs and outputs of nodes": "mark-of-a-node",
    "output of a run": "mark-of-the-output",
    "payloads of signals": "mark-of-a-signal",
    "message of an error": "mark-of-a-message",
    "`details` of an error": "mark-of-details",
    "database's URL": PASSWORD,
    "`headers` of `partita.http`, data of `partita.log`": "mark-of-a-line",
}
"""What is looked for, by the page's words for it."""
TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'partita'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""


def said() -> dict[str, list[bool]]:
    """What the page says: whether each thing is in PostgreSQL, the object, Events and logs."""
    rows = PAGE.split("## Where data and secrets end up\n")[1].strip().split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {name: [not cell.startswith("no") for cell in rest] for name, *rest in cells if name in MARKS}


def tasks() -> Tasks:
    """Tasks whose results and failures are marked."""
    app = Tasks()

    @app.task("work")
    def work(note: str) -> dict[str, str]:
        return {"text": note.replace("in", "out")}

    @app.task("fail")
    def fail() -> None:
        raise TaskError(MARKS["message of an error"], details={"of": MARKS["`details` of an error"]})

    return app


NODE = MARKS["inputs and outputs of nodes"].removeprefix("mark-")
GOOD = definition(
    "good",
    [
        task("work", "work", input={"note": "${'mark-' + '%s'}" % NODE}),  # noqa: UP031  # braces of the expression
        {**APPROVAL[0], "dependsOn": ["work"]},
        task("note", "partita.log", input={"message": "a", "data": "mark-of-a-line"}, dependsOn=["approval"]),
    ],
    output={"shown": MARKS["output of a run"]},
)
BAD = definition("bad", [task("fail", "fail")])
LARGE = definition("large", [{"name": "only", "compute": {}}], output={"shown": "${'large-output-' + input.filler}"})


async def everything(url: str) -> str:
    """All rows of all tables."""
    connection = await asyncpg.connect(url)
    try:
        rows = [
            await connection.fetchval(f"SELECT json_agg(t)::text FROM partita.{name} AS t")  # noqa: S608  # of the catalogue
            for (name,) in await connection.fetch(TABLES)
        ]
    finally:
        await connection.close()
    return "\n".join(filter(None, rows))


async def test_data_and_secrets_are_where_the_page_says(
    here: Namespace, direct: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = direct.database.url.replace("postgres@", f"postgres:{PASSWORD}@", 1)
    assert PASSWORD in url
    settings = operator_settings(replace(direct, database=replace(direct.database, url=url)), here.name)
    settings = replace(settings, operator=replace(settings.operator, events_after_ms=0))
    async with operating(here, settings), working(settings, tasks()):
        for each in (GOOD, BAD, LARGE):
            await here.create(each)
        await here.create(run("good", "good", input={"of": MARKS["input of a run"]}))
        await here.run_until("good", lambda status: status.get("waitingFor") == "event approval", "waiting")
        await here.signal("good", "s1", payload={"of": MARKS["payloads of signals"]})
        await here.phase("good", "Succeeded")
        await here.create(run("bad", "bad"))
        await here.phase("bad", "Failed")
        await here.create(run("large", "large", input={"filler": "x" * 2_048}))
        large = await here.phase("large", "Succeeded")
        events = await until(lambda: told(here), within=60, every=0.2, what="the end of both runs to be told")
    objects = json.dumps([await here.get(RUNS, name) for name in ("good", "bad")])
    places = [await everything(direct.database.url), objects, events, caplog.text]
    assert {name: [mark in place for place in places] for name, mark in MARKS.items()} == said()
    assert large.get("output") is None


async def told(here: Namespace) -> str:
    """All Events, once the ends of the runs are among them."""
    shown: dict[str, Any] = json.loads(await here.kubectl("get", "events", "-o", "json"))
    ends = {(each["involvedObject"]["name"], each["reason"]) for each in shown["items"]}
    return json.dumps(shown) if {("good", "Succeeded"), ("bad", "Failed")} <= ends else ""


def test_the_page_has_a_row_for_everything_that_is_looked_for() -> None:
    assert set(said()) == set(MARKS)
    assert re.search(r"up to 2 KiB \(`PARTITA_LIMITS_STATUS_OUTPUT_BYTES`\)", PAGE)
