"""The code of docs/workers.md runs as it stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from partita.settings import Settings, WorkerHttpSettings, WorkerSettings
from partita.worker import Tasks, load
from partita.worker.builtins import answer, http, signal
from partita.worker.builtins.request import FIELDS, METHODS
from tests.worker.hosted import NAMESPACE, hosted
from tests.worker.shop import Shop, watcher
from tests.worker.web import LOOPBACK, serving

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "workers.md"
MANIFEST = re.compile(r"<!-- test: (\w+\.yaml) -->\n```yaml\n(.*?)```", re.S)
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
    for setting in (*fields(WorkerSettings), *fields(WorkerHttpSettings)):
        assert setting.name.upper() in text


def test_every_word_of_the_built_in_tasks_is_described() -> None:
    text = GUIDE.read_text()
    kinds = (http.UNREACHABLE, http.FORBIDDEN_TARGET, http.CREDENTIALS, answer.INVALID_RESPONSE)
    for word in (*kinds, signal.NOT_FOUND, signal.REFUSED, *FIELDS, *METHODS):
        assert f"`{word}`" in text, word


async def test_the_built_in_tasks_work_as_shown(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, text),) = MANIFEST.findall(GUIDE.read_text())
    monkeypatch.setenv("PARTITA_HTTP_CREDENTIALS_SHOP", "Authorization: Bearer quiet-word")
    monkeypatch.setenv("PARTITA_HTTP_CREDENTIALS_SHOP_HOSTS", "127.0.0.1")
    shop = Shop()
    async with serving(shop) as site, hosted(replace(settings, worker_http=LOOPBACK), Tasks()) as host:
        watching = await watcher(host, "ordered")
        await host.engine.deploy(NAMESPACE, "announce", yaml.safe_load(text)["spec"])
        value = {"api": site.url("").rstrip("/"), "sku": "violin", "watcher": "watcher"}
        ended = await host.ended(await host.start(value, name="announce"))
        assert orjson.loads(ended["output_json"]) == {"id": "o-1", "told": "Consumed"}, ended["error_json"]
        assert orjson.loads((await host.ended(watching))["output_json"]) == {"got": {"id": "o-1"}}
    assert (len(shop.keys), len(set(shop.keys)), shop.authorization) == (2, 1, {"Bearer quiet-word"})
