"""Signals of a wrong form are refused in words, before the database is asked about them."""

from __future__ import annotations

from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.domain.state.events import ControlsApplied
from partita.domain.state.mailbox import INVALID_SIGNAL
from partita.engine import Engine
from tests.engine.support import APPROVAL, count, signal, start, status

Connection: TypeAlias = "asyncpg.Connection[Any]"
WRONG = ["a\0b", "", "x" * 64, "a b", "\ud800"]


@pytest.mark.parametrize("id_", WRONG, ids=["NUL", "empty", "long", "blank", "surrogate"])
async def test_an_id_of_a_wrong_form_is_refused(engine: Engine, other: Connection, id_: str) -> None:
    run_id = await start(engine, APPROVAL)
    reply = await engine.apply(run_id, signal(id_))
    assert (reply.outcome, reply.reason) == ("refused", INVALID_SIGNAL)
    assert reply.message.startswith("id: ")
    assert (await status(other, run_id), await count(other, "workflow_events", run_id)) == ("Running", 0)
    assert (await engine.apply(run_id, signal("s"))).outcome == "applied"
    assert await status(other, run_id) == "Succeeded"


@pytest.mark.parametrize("name", ["a\0b", "", "x" * 1_025], ids=["NUL", "empty", "long"])
async def test_a_name_of_a_wrong_form_is_refused(engine: Engine, name: str) -> None:
    run_id = await start(engine, APPROVAL)
    reply = await engine.apply(run_id, signal("s", name=name))
    assert (reply.outcome, reply.reason) == ("refused", INVALID_SIGNAL)


async def test_the_other_signals_of_an_object_are_taken(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, APPROVAL)
    controls = ControlsApplied(cr_generation=2, signals=(signal("a\0b"), signal("s")))
    assert (await engine.apply(run_id, controls)).outcome == "applied"
    assert await status(other, run_id) == "Succeeded"
