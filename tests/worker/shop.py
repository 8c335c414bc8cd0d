"""The other side of the examples with built-in tasks: a shop on loopback, and a run that waits for a signal."""

from __future__ import annotations

from uuid import UUID

from aiohttp import web

from partita.engine.requests import StartRequest
from tests.worker.hosted import NAMESPACE, Host

WAITS = {"name": "wait", "waitForEvent": {"name": "${input.event}"}}


class Shop:
    """A shop that is busy at first, and delivers when it has been asked for the third time."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.authorization: set[str] = set()
        self.asked = 0

    async def __call__(self, request: web.Request) -> web.Response:
        """Answer anything."""
        self.authorization.add(request.headers.get("Authorization", ""))
        if request.method == "POST":
            self.keys.append(request.headers["Idempotency-Key"])
            if len(self.keys) == 1:
                return web.Response(status=503, headers={"Retry-After": "0"})
            return web.json_response({"id": "o-1"}, status=201)
        self.asked += 1
        return web.json_response({"status": "delivered" if self.asked == 3 else "packed"})


async def watcher(host: Host, event: str) -> UUID:
    """A run named ``watcher`` that waits for a signal."""
    await host.deploy(WAITS, name="watch", output={"got": "${nodes.wait.output}"})
    request = StartRequest(namespace=NAMESPACE, definition="watch", name="watcher", input={"event": event})
    return (await host.engine.start(request)).run_id
