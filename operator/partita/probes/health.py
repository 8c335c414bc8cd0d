"""A small HTTP endpoint for the kubelet's probes and for Prometheus.

| path | answer |
|---|---|
| ``/livez`` | 200; 500 with the reason when only a restart helps |
| ``/readyz`` | 200 when the process does its work, else 503; both say in words how it is |
| ``/healthz`` | 200 with one word for its state, for people |
| ``/metrics`` | the metrics |

Invariant: it has a thread and an event loop of its own, since the loop that works could not say that it stands still.
Trade-off: it reads what that loop writes without a lock; every answer is made of values that are whole in themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from partita.probes.metrics import CONTENT_TYPE
from partita.probes.vitals import Vitals

REQUEST_SECONDS = 5.0
REQUEST_BYTES = 16_384
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: str
    text: str
    kind: str = PLAIN


@asynccontextmanager
async def serving(host: str, port: int, vitals: Vitals) -> AsyncIterator[None]:
    """Answer requests for the length of the block; ``port`` 0 serves nothing. Raises OSError for a port in use."""
    if not port:
        yield
        return
    listener, loop, stop = _listener(host, port), asyncio.new_event_loop(), asyncio.Event()

    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_serve(listener, vitals, stop))

    thread = threading.Thread(target=serve, name="partita:health", daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # its loop is closed already
            loop.call_soon_threadsafe(stop.set)
        await asyncio.to_thread(thread.join)


def answer_of(path: str, vitals: Vitals) -> Answer:
    """The answer to a GET of this path."""
    if path == "/livez":
        trouble = vitals.trouble()
        return Answer("500 Internal Server Error", f"{trouble}\n") if trouble else Answer("200 OK", "ok\n")
    if path == "/readyz":
        found = vitals.readiness()
        return Answer("200 OK" if found.ready else "503 Service Unavailable", f"{found.words}\n")
    if path == "/healthz":
        return Answer("200 OK", f"{vitals.state}\n")
    if path == "/metrics":
        return Answer("200 OK", vitals.text(), CONTENT_TYPE)
    return Answer("404 Not Found", "expected /livez, /readyz, /healthz or /metrics\n")


def _listener(host: str, port: int) -> socket.socket:
    if ":" not in host:
        return socket.create_server((host, port))
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=socket.AF_INET6, dualstack_ipv6=both)


async def _serve(listener: socket.socket, vitals: Vitals, stop: asyncio.Event) -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await _answer(reader, writer, vitals)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    async with await asyncio.start_server(connection, sock=listener, limit=REQUEST_BYTES):
        await stop.wait()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, vitals: Vitals) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    method, path, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", ""]
    answer = answer_of(path.partition("?")[0], vitals)
    if method not in ("GET", "HEAD"):
        answer = Answer("405 Method Not Allowed", "expected GET\n")
    body = answer.text.encode()
    head_lines = (
        f"HTTP/1.1 {answer.status}\r\nConnection: close\r\nCache-Control: no-store\r\n"
        f"Content-Type: {answer.kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head_lines.encode() + (b"" if method == "HEAD" else body))
    await writer.drain()
