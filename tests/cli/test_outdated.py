"""A command that is older than its schema does not work on it, and says what helps."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from partita.cli.exits import Exit
from tests import postgres
from tests.cli.commands import Cli

MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: ship}
spec:
  nodes:
    - {name: pack, task: {type: pack}}
"""


async def demand(url: str) -> None:
    """What the migration of a later version does."""
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE partita.engine_state SET oldest_protocol = 99")
    await connection.close()


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "ship.yaml"),
        ("get", "ship"),
        ("list",),
        ("cancel", "ship"),
        ("history", "ship"),
        ("workers",),
        ("queues",),
    ],
)
def test_it_is_refused(
    on_database: Cli, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ship.yaml").write_text(MANIFEST)
    postgres.run(demand(database_url))
    done = on_database(*words)
    assert done.code == Exit.CONFLICT, done
    assert "demands engine protocol 99" in done.err
    assert "try: a newer release of partita" in done.err
