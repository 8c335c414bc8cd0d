"""The code of docs/workers.md runs as it stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson
import pytest

from partita.settings import Settings, WorkerSettings
from partita.worker import Tasks, load
from tests.worker.hosted import hosted

GUIDE = Path(__file__).parents[2] / "docs" / "workers.md"
EXAMPLE = re.compile(r"<!-- test: (\w+\.py) -->\n```python\n(.*?)```", re.S)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tasks]:
    ((name, code),) = EXAMPLE.findall(GUIDE.read_text())
    (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield load(f"{Path(name).stem}:app")
    del sys.modules[Path(name).stem]


async def outcome(settings: Settings, shop: Tasks, type: str, value: Any) -> tuple[Any, str]:  # noqa: A002 - the SDK's word
    """Output and error type of a run of one task."""
    async with hosted(settings, shop) as host:
        await host.deploy(
            {"name": "only", "task": {"type": type}, "input": {key: f"${{input.{key}}}" for key in value}},
            output={"value": "${nodes.only.output}"},
        )
        ended = await host.ended(await host.start(value))
        output = orjson.loads(ended["output_json"] or "{}").get("value")
        return output, orjson.loads(ended["error_json"] or "{}").get("type", "")


async def test_the_example_works(settings: Settings, shop: Tasks) -> None:
    assert list(shop) == ["charge-card", "pack"]
    charged, error = await outcome(settings, shop, "charge-card", {"customer": "ann", "amount": 3})
    assert charged["id"].startswith("charge-")
    assert error == ""
    packed, error = await outcome(settings, shop, "pack", {"lines": ["a", "b"]})
    assert (packed, error) == (["box for a", "box for b"], "")


@pytest.mark.parametrize(
    ("customer", "amount", "error"),
    [("ann", 0, "fatal"), ("broke", 3, "card_declined"), ("busy", 3, "")],
)
async def test_its_failures_are_as_described(
    settings: Settings, shop: Tasks, customer: str, amount: int, error: str
) -> None:
    assert (await outcome(settings, shop, "charge-card", {"customer": customer, "amount": amount}))[1] == error


def test_every_worker_setting_is_described() -> None:
    text = GUIDE.read_text()
    for setting in fields(WorkerSettings):
        assert setting.name.upper() in text
