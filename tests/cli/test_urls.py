"""A connection URL that can never work is refused at once, without repeating it."""

from __future__ import annotations

import pytest

from partita.cli.exits import Exit
from partita.database_url import EXPECTED, url_problem
from partita.domain.errors import InvalidError
from partita.settings import DatabaseSettings, Settings
from partita.store import backoff
from partita.store.database import Database
from tests.cli.commands import Cli

BAD = [
    "postgresql://u:s3cret@[::1/x",
    "mysql://u:s3cret@h/x",
    "u:s3cret@h/x",
    "s3cret",
    "postgresql:/s3cret",
    "postgresql://u:s3cret@h:abc/x",
    "postgresql://u:s3cret@h:0/x",
    "postgresql://u:s3cret@h:99999/x",
    "postgresql://u:s3cret@[::1]:x/x",
    "postgresql://u:s3cret@a:1,b:y/x",
    "postgresql://u:s3cret@h/x?port=s3cret",
    "postgresql://u:s3cret@h/x?sslmode=s3cret",
    "postgresql://u:s3cret@h/x y",
    "postgresql://u:s3cret@h\n/x",
]
GOOD = [
    "postgresql://",
    "postgres://h",
    "postgresql://u:p@h:5432/x",
    "postgresql://u:p%40@[::1]:5432/x?sslmode=verify-full",
    "postgresql://u@a:1,b,[::1]:3/x",
    "postgresql:///x?host=/tmp&port=5432",
]


@pytest.fixture
def never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits to try a second time fails."""

    def pause(_: object) -> None:
        raise AssertionError("it is tried again")

    monkeypatch.setattr(backoff.Backoff, "pause", pause)


@pytest.mark.parametrize("url", GOOD)
def test_good_urls(url: str) -> None:
    assert url_problem(url) == ""
    assert Settings.load({"PARTITA_DATABASE_URL": url}).database.url == url


@pytest.mark.usefixtures("never_again")
@pytest.mark.parametrize("url", BAD)
@pytest.mark.parametrize("name", ["--database-url", "PARTITA_DATABASE_URL", "PARTITA_MIGRATIONS_URL"])
def test_bad_urls_are_a_usage_error_at_once(partita: Cli, monkeypatch: pytest.MonkeyPatch, url: str, name: str) -> None:
    if name.startswith("--"):
        refused = partita("queues", name, url)
    else:
        monkeypatch.setenv(name, url)
        refused = partita("queues")
    assert refused.code == Exit.USAGE
    assert name in refused.err
    assert "expected" in refused.err
    assert "s3cret" not in refused.err


def test_settings_made_by_hand_are_checked_too() -> None:
    with pytest.raises(InvalidError) as caught:
        DatabaseSettings(url="mysql://x", read_url="garbage")
    assert [str(problem) for problem in caught.value.problems] == [
        f"url: is no URL of PostgreSQL; {EXPECTED}",
        f"read_url: is no URL of PostgreSQL; {EXPECTED}",
    ]


@pytest.mark.usefixtures("never_again")
async def test_what_the_driver_refuses_is_not_tried_again() -> None:
    url = "postgresql://127.0.0.1:1/x?sslnegotiation=never"
    async with await Database.open(DatabaseSettings(url=url)) as database:
        with pytest.raises(InvalidError, match="sslnegotiation"):
            await database.clock()
        with pytest.raises(InvalidError, match="sslnegotiation"):
            await database.dedicated("test").connection()
