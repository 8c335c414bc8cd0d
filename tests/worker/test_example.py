"""The example with built-in tasks alone works, without leaving this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import yaml

from partita.settings import Settings
from partita.worker import Tasks
from tests.worker.hosted import NAMESPACE, hosted
from tests.worker.shop import Shop, watcher
from tests.worker.web import LOOPBACK, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "http-poll.yaml"


async def test_the_example_of_the_built_in_tasks_works(settings: Settings) -> None:
    definition, _ = yaml.safe_load_all(EXAMPLE.read_text())
    definition["spec"]["nodes"][1]["repeat"]["delay"] = "10ms"
    shop = Shop()
    async with serving(shop) as site, hosted(replace(settings, worker_http=LOOPBACK), Tasks()) as host:
        watching = await watcher(host, "delivered")
        await host.engine.deploy(NAMESPACE, "http-poll", definition["spec"])
        value = {"shop": site.url("").rstrip("/"), "sku": "violin", "tell": str(watching)}
        ended = await host.ended(await host.start(value, name="http-poll"))
        assert orjson.loads(ended["output_json"] or "null") == {"order": "o-1", "asked": 3}, ended["error_json"]
        assert orjson.loads((await host.ended(watching))["output_json"]) == {"got": {"sku": "violin"}}
    assert [request.path_qs for request in site.requests][2:] == [f"/orders/o-1?asked={number}" for number in range(3)]
