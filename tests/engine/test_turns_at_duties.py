"""Whose turn a duty is, and how long a turn lasts that nobody ends."""

from __future__ import annotations

import asyncio

import pytest

from partita.settings import Settings
from partita.store import duties
from partita.store.database import Database
from partita.store.duties import DutyStore
from tests.waiting import until


async def nothing() -> None:
    """A round with nothing to do."""


async def test_one_process_has_the_turn(settings: Settings) -> None:
    async with await Database.open(settings.database) as one, await Database.open(settings.database) as other:
        begun, go = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await go.wait()

        mine = asyncio.create_task(DutyStore(one).in_turn("sweeper", work))
        await begun.wait()
        assert await DutyStore(other).in_turn("timers", nothing)
        assert not await DutyStore(other).in_turn("sweeper", nothing)
        go.set()
        assert await mine
        assert await DutyStore(other).in_turn("sweeper", nothing)


async def test_a_turn_of_a_process_that_is_gone_without_a_word_is_another_ones_soon(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server would hear of a machine without power only when it gives a silent connection up, hours later."""
    assert duties.TURN_IDLE == "60s"
    monkeypatch.setattr(duties, "TURN_IDLE", "300ms")
    async with await Database.open(settings.database) as gone, await Database.open(settings.database) as other:
        begun = asyncio.Event()

        async def silence() -> None:
            begun.set()
            await asyncio.Event().wait()

        frozen = asyncio.create_task(DutyStore(gone).in_turn("sweeper", silence))
        await begun.wait()

        async def taken() -> bool:
            return await DutyStore(other).in_turn("sweeper", nothing)

        await until(taken, what="another to have the turn")
        frozen.cancel()
        await asyncio.gather(frozen, return_exceptions=True)
