"""Arrays that a coordinator sends are byte for byte those of the driver."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from partita.domain.state.rows import FROZEN
from partita.settings import Settings
from partita.store import arrays
from partita.store.database import Connection, Dedicated
from tests.postgres import direct_url

SAMPLES: dict[str, tuple[Any, ...]] = {
    "_bool": (True, False),
    "_int2": (-32_768, 0, 1, 32_767),
    "_int4": (-(2**31), 0, 7, 2**31 - 1),
    "_int8": (-(2**63), 0, 2**40, 2**63 - 1),
    "_text": ("", "Completed", "ä€😀", "x" * 100, 'quote " { } \\ , NULL'),
    "_json": ('{"a":1}', "null", "[]"),
    "_jsonb": ('{"a": 1}', "null", "[]"),
    "_timestamptz": (
        datetime(2000, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2031, 6, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        FROZEN,
        datetime.min.replace(tzinfo=UTC),
    ),
    "_uuid": (UUID(int=0), UUID("01973a5e-7c00-7abc-8def-0123456789ab"), UUID(int=2**128 - 1)),
}
PLACES = (b"\0\0\0\x07\0\x01", b"\xff\xff\xff\xfe\0\xff")
NAMES = [name for name, _, _ in arrays.CODECS]


@pytest.fixture
async def plain(settings: Settings) -> AsyncIterator[Connection]:
    """A connection that sends arrays as the driver does."""
    connection = await asyncpg.connect(direct_url(settings))
    yield connection
    await connection.close()


@pytest.fixture
async def ours(settings: Settings) -> AsyncIterator[Connection]:
    """A coordinator's connection."""
    dedicated = Dedicated(settings.database, "test", planner=True)
    yield await dedicated.connection()
    await dedicated.close()


@pytest.mark.parametrize("name", [name for name in NAMES if name in SAMPLES])
async def test_the_server_receives_the_same(plain: Connection, ours: Connection, name: str) -> None:
    kind = name.removeprefix("_")
    question = f"SELECT ($1::{kind}[])::text"
    values = SAMPLES[name]
    for sent in ((), values, (None,), (None, *values, None), values[:1] * 300, [*values, *values]):
        assert await ours.fetchval(question, sent) == await plain.fetchval(question, sent)


async def test_times_go_and_come_as_the_driver_has_them(plain: Connection, ours: Connection) -> None:
    many = [datetime(2031, 6, 1, tzinfo=UTC) + timedelta(microseconds=7 * number) for number in range(3_000)]
    for sent in (*SAMPLES["_timestamptz"], None, many[7]):
        assert await ours.fetchval("SELECT $1::timestamptz::text", sent) == await plain.fetchval(
            "SELECT $1::timestamptz::text", sent
        )
    question = "SELECT unnest($1::timestamptz[])"
    sent = [*SAMPLES["_timestamptz"][:3], *many, None, *many[:5]]
    found = [row[0] for row in await ours.fetch(question, sent)]
    assert found == [row[0] for row in await plain.fetch(question, sent)] == sent
    assert {one.tzinfo for one in found if one is not None} == {UTC}
    ends = [row[0] for row in await ours.fetch(question, SAMPLES["_timestamptz"][3:])]
    assert ends == list(SAMPLES["_timestamptz"][3:]), "the driver's own have no time zone"
    with pytest.raises(asyncpg.DataError):
        await ours.fetchval("SELECT $1::timestamptz", "noon")


@pytest.mark.parametrize("name", NAMES)
async def test_the_numbers_of_types_are_the_servers(plain: Connection, name: str) -> None:
    (oid, encode) = next((oid, encode) for known, oid, encode in arrays.CODECS if known == name)
    row = await plain.fetchrow("SELECT oid, typelem FROM pg_type WHERE typname = $1", name)
    assert row is not None
    assert (oid, struct.unpack(">I", encode(SAMPLES.get(name, PLACES))[8:12])[0]) == (row["oid"], row["typelem"])


async def test_a_place_goes_back_as_it_came(plain: Connection, ours: Connection) -> None:
    assert {"_tid"} == set(NAMES) - SAMPLES.keys()
    rows = await ours.fetch("SELECT unnest($1::tid[]) AS place", [*PLACES, None])
    assert [row["place"] for row in rows] == [*PLACES, None]
    text = await ours.fetchval("SELECT $1::tid[]::text", [*PLACES, None])
    assert text == await plain.fetchval("SELECT $1::tid[]::text", [(7, 1), (4_294_967_294, 255), None])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int2", 32_768),
        ("int4", "7"),
        ("int8", 2**63),
        ("text", 7),
        ("text", "\ud800"),
        ("uuid", "x"),
        ("timestamptz", 1),
    ],
)
async def test_what_cannot_be_sent_is_a_data_error(ours: Connection, kind: str, value: object) -> None:
    with pytest.raises(asyncpg.DataError):
        await ours.fetchval(f"SELECT $1::{kind}[]", [value])
    assert await ours.fetchval("SELECT 1") == 1


async def test_texts_are_read_too(ours: Connection) -> None:
    for texts in ([], ["a"], ["", None, "ä€"]):
        assert await ours.fetchval("SELECT $1::text[]", texts) == texts
    with pytest.raises(TypeError, match="only sends arrays"):
        await ours.fetchval("SELECT ARRAY[1, 2]")


async def test_what_is_remembered_is_bounded(ours: Connection) -> None:
    for first in range(0, 3_000, 1_000):
        texts = [str(number) for number in range(first, first + 1_000)]
        assert await ours.fetchval("SELECT $1::text[]", texts) == texts
