"""Statements that are a transaction: what is written under a proof, and what the server says of moved rows."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import pytest

from partita.store import columns, direct
from partita.store.database import Database
from partita.store.direct import _DERIVED, Belief, _values, conditional
from partita.store.slices import AskedVersion
from partita.store.sql import Sql, blocks
from partita.store.together import Part, Write
from partita.store.writes import TOGETHER

MARKER = re.compile(r"/\* (?:AND|WHERE) proved \*/")
PLACE = b"\0\0\0\0\0\x01"
SETTLED = columns.arrays([(UUID(int=1), PLACE, "a", 0, datetime(2031, 6, 1, tzinfo=UTC), "Completed", None)])
BOUNDS = (UUID(int=0), UUID(int=2**128 - 1))


def test_what_may_be_written_has_one_condition_or_reads_what_has_one() -> None:
    marked = {name for name, block in blocks().items() if MARKER.search(block.text)}
    assert marked == set(TOGETHER) - _DERIVED
    for name in marked:
        assert len(MARKER.findall(blocks()[name].text)) == 1, name
    for name in _DERIVED:
        assert re.search(r"\bFROM ended_runs\b", blocks()[name].text), name


@pytest.mark.parametrize("name", TOGETHER)
def test_a_block_writes_only_what_is_proved(name: str) -> None:
    text = conditional(Sql("partita"), Part(name, 0, counted=False))
    assert text.count("EXISTS (SELECT FROM proved)") == (0 if name in _DERIVED else 1)


def test_a_block_without_a_condition_is_refused() -> None:
    with pytest.raises(AssertionError, match="update_runs: has no condition to write under"):
        conditional(Sql("partita"), Part("update_runs", 0, counted=False))


def test_a_single_row_is_sent_as_values() -> None:
    """But not what is no column of it: bounds, and an array that the block asks for as one."""
    settled = Write("settle_tasks", (*SETTLED, *BOUNDS), 1, counted=True)
    assert _values(settled) == [*(column[0] if column else None for column in SETTLED), *BOUNDS]
    text = conditional(Sql("partita"), direct.part_of(settled))
    assert "[]" not in text
    closed = Write("delete_open_runs", ([UUID(int=1)],), 1)
    assert _values(closed) == [[UUID(int=1)]]
    assert "$1::uuid[]" in conditional(Sql("partita"), direct.part_of(closed))


def test_several_rows_are_sent_as_arrays() -> None:
    two = Write("delete_open_runs", ([UUID(int=1), UUID(int=2)],), 2)
    assert _values(two) == two.values
    assert not direct.part_of(two).single


@pytest.mark.parametrize("proved", [True, False])
async def test_a_row_that_was_moved_is_an_error_that_says_which(database: Database, proved: bool) -> None:
    """Nothing is missed where nothing is proved."""
    row = await database.fetchrow("retention_floor")
    assert row is not None
    belief = Belief(1_000_000 if proved else 0, row["now"], row["retention_floor"])
    proof = direct.of_start(belief, AskedVersion(UUID(int=1), 1, exact=False), decided=True)
    moved = Write("settle_tasks", (*SETTLED, *BOUNDS), 1, counted=True)
    dedicated = database.dedicated("test")
    try:
        sent = direct.send(dedicated, database.sql, proof, [moved], 5_000)
        if proved:
            with pytest.raises(asyncpg.DataError, match="settle_tasks: not all of 1 rows stand where they were left"):
                await sent
        else:
            assert await sent is None
    finally:
        await dedicated.close()
