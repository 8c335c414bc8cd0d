"""Answers of an API server that say something else than their status does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import kopf
import orjson
import pytest

from partita.cli.cluster import ClusterBackend
from partita.domain.errors import InvalidError, UnavailableError
from partita.kube.client import KubeClient


@asynccontextmanager
async def answering(status: int, message: str) -> AsyncIterator[str]:
    """The address of a server that answers every request alike."""
    body = orjson.dumps({"kind": "Status", "code": status, "message": message})

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("failed to create typed patch object (a/b; v1, Kind=X): .spec.nods: field not declared", InvalidError),
        ("etcdserver: request timed out", UnavailableError),
    ],
)
async def test_status_500_is_bad_input_where_the_message_says_so(message: str, expected: type[Exception]) -> None:
    async with (
        answering(500, message) as address,
        KubeClient(lambda: kopf.ConnectionInfo(server=address)) as client,
    ):
        with pytest.raises(expected, match=re.escape(message)):
            await client.apply("/x", {}, "test")


async def test_a_reason_that_an_object_cannot_hold_is_refused_before_anything_is_sent() -> None:
    async with (
        answering(500, "nobody is to ask") as address,
        KubeClient(lambda: kopf.ConnectionInfo(server=address)) as client,
    ):
        with pytest.raises(InvalidError, match="--reason: a WorkflowRun object has no field"):
            await ClusterBackend(client).cancel_nodes("shop", "one", ["pay"], "twice")
