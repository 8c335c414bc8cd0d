"""The code of docs/starting-runs.md runs as it stands there."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.engine import Engine
from tests.engine import support

Connection: TypeAlias = "asyncpg.Connection[Any]"
GUIDE = Path(__file__).parents[2] / "docs" / "starting-runs.md"
EXAMPLE = re.compile(r"<!-- test: (\w+)\.py -->\n```python\n(.*?)```", re.S)
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    ((name, code),) = EXAMPLE.findall(GUIDE.read_text(encoding="utf-8"))
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    del sys.modules[name]


async def test_the_examples_do_what_they_say(engine: Engine, other: Connection, guide: ModuleType) -> None:
    await engine.deploy(support.NAMESPACE, "order", {**support.CHAIN, "inputSchema": SCHEMA})
    first = await guide.start_order(engine, {"id": 1})
    assert await guide.start_order(engine, {"id": 1}) == first
    refused = await guide.start_orders(engine, [{"id": 1}, {"id": 2}, {"id": "three"}])
    assert list(refused) == ["three"]
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs") == 2

    await other.execute("CREATE TABLE orders (id integer PRIMARY KEY)")
    placed = await guide.place_orders(engine, other, [{"id": 5}, {"id": 6}])
    with pytest.raises(asyncpg.UniqueViolationError):
        await guide.place_orders(engine, other, [{"id": 7}, {"id": 6}])
    inbox = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    assert {row["run_id"] for row in inbox} == set(placed)
    await asyncio.gather(*map(engine.deliver, inbox))
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs") == 4
