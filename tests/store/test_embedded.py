"""The private server: started by the first user, stopped by the last."""

from __future__ import annotations

import multiprocessing
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from partita.domain.errors import NotFoundError
from partita.store import programs
from partita.store.embedded import DEFAULT_VERSION, Server, shared
from tests import postgres


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that has not been started."""
    with tempfile.TemporaryDirectory(prefix="partita-emb-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data", postgres.chosen_version() or DEFAULT_VERSION, durable=False)
        yield server
        server.remove()


def _use(server: Server, entered: multiprocessing.synchronize.Event, leave: multiprocessing.synchronize.Event) -> None:
    with shared(server):
        entered.set()
        leave.wait(60)


def test_the_last_user_stops_it_even_when_another_was_killed(server: Server) -> None:
    context = multiprocessing.get_context("spawn")
    entered, leave = context.Event(), context.Event()
    other = context.Process(target=_use, args=(server, entered, leave))
    with shared(server):
        first = server.pid
        other.start()
        assert entered.wait(60)
    assert server.pid == first is not None
    with shared(server):
        other.kill()
        other.join(60)
        assert server.pid == first
    assert server.pid is None


def test_nobody_else_can_enter_and_there_is_no_port(server: Server) -> None:
    server.start()
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    assert stat.S_IMODE((server.socket_folder / ".s.PGSQL.5432").stat().st_mode) == 0o700
    listening = (server.data / "postmaster.pid").read_text().splitlines()[5]
    assert listening.strip() == ""
    if os.geteuid() == 0:
        assert server.data.stat().st_uid != 0


def test_starting_twice_and_stopping_twice_is_once(server: Server) -> None:
    server.start()
    first = server.pid
    server.start()
    assert server.pid == first
    server.stop()
    server.stop()
    assert server.pid is None


def test_a_stale_pid_file_does_not_count(server: Server) -> None:
    server.start()
    text = (server.data / "postmaster.pid").read_text()
    server.stop()
    (server.data / "postmaster.pid").write_text(text.replace(text.splitlines()[0], str(os.getpid()), 1))
    assert server.pid is None
    (server.data / "postmaster.pid").unlink()


def test_a_long_path_gets_a_short_socket(server: Server) -> None:
    long = Server(server.data.parent / ("x" * 100) / "data", server.version, durable=False)
    assert len(str(long.socket_folder)) < 80
    long.start()
    try:
        assert postgres.run(_answer(long.url())) == 1
    finally:
        long.remove()


async def _answer(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT 1"))
    finally:
        await connection.close()


def test_programs_in_a_closed_place_are_copied(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0 and programs._packaged(server.version):
        monkeypatch.setattr(programs, "_reachable", lambda _: False)
        folder = programs.binaries(server.version)
        assert folder.is_relative_to("/var/lib/partita")
        server.start()
        assert server.pid is not None


def test_a_version_that_is_not_installed_is_said(server: Server) -> None:
    with pytest.raises(NotFoundError, match=r"PostgreSQL 9: .*try: pip install"):
        Server(server.data, 9).start()
