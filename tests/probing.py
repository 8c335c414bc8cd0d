"""Asking a process's probes over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import socket

from tests.waiting import until


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and text of an answer; raises OSError while nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


async def asked(port: int, path: str) -> tuple[int, str]:
    """The same without holding up the event loop; status 0 while nobody listens."""
    try:
        return await asyncio.to_thread(ask, port, path)
    except OSError as error:
        return 0, str(error)


async def says(port: int, path: str, status: int, words: str, *, within: float = 30.0) -> str:
    """Wait until a path is answered with this status and a text that has these words; returns the text."""
    last: tuple[int, str] = (0, "")

    async def check() -> bool:
        nonlocal last
        last = await asked(port, path)
        return last[0] == status and words in last[1]

    try:
        await until(check, within=within, every=0.05)
    except AssertionError as error:
        raise AssertionError(f"{path}: not {status} {words!r} within {within} s, but {last}") from error
    return last[1]


def values(text: str) -> dict[str, float]:
    """Samples of a scrape by name and labels, as they are written."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
