"""Processes whose only way to the server leads through PgBouncer."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita.settings import Settings
from tests import pgbouncer
from tests.pgbouncer import PgBouncer
from tests.postgres import Cluster

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("partita"))
StartWorker = Callable[[Settings], "subprocess.Popen[bytes]"]


def environment(settings: Settings, **more: str) -> dict[str, str]:
    """What a process needs to reach the database as these settings do."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PARTITA_")}
    database = settings.database
    return {
        **inherited,
        "PARTITA_DATABASE_URL": database.url,
        "PARTITA_MIGRATIONS_URL": database.migrations_url,
        "PARTITA_DATABASE_POOLED": str(database.pooled).lower(),
        **more,
    }


async def partita(settings: Settings, *words: str) -> str:
    """Output of one command."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *words, cwd=ROOT, env=environment(settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[StartWorker]:
    """Start ``partita worker`` as people do; all are killed at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(settings: Settings) -> subprocess.Popen[bytes]:
        with (tmp_path / f"worker-{len(started)}.log").open("wb") as log:
            command = [PROGRAM, "worker", "tests.pooled.tasks:app"]
            started.append(
                subprocess.Popen(command, cwd=ROOT, env=environment(settings), stdout=log, stderr=subprocess.STDOUT)
            )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def fragile(postgres_cluster: Cluster) -> Iterator[PgBouncer]:
    """A PgBouncer of this test alone, which may be killed."""
    with pgbouncer.before(postgres_cluster.admin_url) as process:
        yield process
