"""Whole lists and watches of objects: what the watch of WorkflowRun reads from the API server.

Invariant: whoever lists and then watches from the list's version misses nothing; where that cannot be had any more, an
error says so. A watch that has fallen silent is an error too, since the server sends a bookmark every minute.
Trade-off: a client with connections of its own, of which a watch holds one for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp

from partita.domain.errors import UnavailableError
from partita.kube.client import KubeClient, error_of, parse_of

LIST_SECONDS: Final = 60.0
WATCH_SECONDS: Final = 300
"""After so long the server ends a watch, which then goes on in another request."""
SILENT_SECONDS: Final = 90.0
CONNECT_SECONDS: Final = 10.0


class StreamClient(KubeClient):
    """Lists and watches."""

    async def whole(self, path: str, page: int = 500) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        """Every object below a path, page by page, with the version from which a watch goes on."""
        params = {"limit": str(page)}
        while True:
            answer = await self._call("GET", path, params=params, seconds=LIST_SECONDS)
            metadata = answer.get("metadata") or {}
            yield answer.get("items") or [], str(metadata.get("resourceVersion") or "")
            token = metadata.get("continue")
            if not token:
                return
            params["continue"] = token

    async def watch(self, path: str, version: str) -> AsyncIterator[dict[str, Any]]:
        """Events of the objects below a path since a version, bookmarks included, until the server ends the answer.

        Raises ContinueExpiredError when the version is forgotten, UnavailableError when nothing comes any more.
        """
        bounds = {"timeoutSeconds": str(WATCH_SECONDS), "allowWatchBookmarks": "true"}
        params = {"watch": "1", "resourceVersion": version, **bounds}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)
        session = self._open()
        try:
            async with session.get(self._server + path, params=params, timeout=timeout) as response:
                if response.status >= 400:
                    await self._refused(path, response)
                async for line in _lines(response.content):
                    event = parse_of(line)
                    if event.get("type") == "ERROR":
                        raise error_of("WATCH", path, int(event["object"].get("code") or 500), event["object"])
                    yield event
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnavailableError(f"kubernetes: WATCH {path}: {str(error) or type(error).__name__}") from error

    async def _refused(self, path: str, response: aiohttp.ClientResponse) -> None:
        """Raise what the answer says; credentials that were refused are read again next time."""
        answer = parse_of(await response.read())
        if response.status == 401:
            await self.close()
        raise error_of("WATCH", path, response.status, answer)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines of a body, of any length, as they come."""
    rest: list[bytes] = []
    async for part in content.iter_any():
        head, *more = part.split(b"\n")
        rest.append(head)
        for line in more:
            yield b"".join(rest)
            rest = [line]
