"""The task ``partita.http``: what is sent, what is kept of the answer, and how each failure is called."""

from __future__ import annotations

import asyncio
import gzip
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from partita.domain.payload import Json
from partita.worker.failures import BuiltinError
from tests.worker.web import LOOPBACK, fails, http, plain, send, serving


async def test_a_request_and_its_answer() -> None:
    async def answer(_: web.Request) -> web.Response:
        headers = {"X-Page": "2", "Set-Cookie": "session=1", "Link": "<a>"}
        return web.json_response({"n": [1, 2.5, None]}, status=201, headers=headers)

    async with serving(answer) as site, http() as task:
        output = await send(
            task,
            url=site.url("/orders?state=open"),
            method="POST",
            query={"page": 2, "all": True, "tag": ["a b", "c&d"], "none": None},
            headers={"X-Trace": "t1", "X-Count": 3},
            body={"sku": "violin"},
        )
    assert (output["status"], output["body"]) == (201, {"n": [1, 2.5, None]})
    assert (output["headers"]["x-page"], output["headers"]["link"]) == ("2", "<a>")
    assert "set-cookie" not in output["headers"]
    (request,) = site.requests
    assert list(request.query.items()) == [
        ("state", "open"), ("page", "2"), ("all", "true"), ("tag", "a b"), ("tag", "c&d"),
    ]  # fmt: skip  # one line reads better
    assert (request.headers["X-Trace"], request.headers["X-Count"]) == ("t1", "3")
    assert request.headers["Content-Type"] == "application/json"
    assert site.bodies == [b'{"sku":"violin"}']


async def test_text_goes_and_comes_as_text() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=(await request.text()) + "!", content_type="text/plain", charset="latin-1")

    async with serving(answer) as site, http() as task:
        output = await send(task, url=site.url(), method="PUT", text="grüß", headers={"content-type": "text/x-mine"})
    assert output["body"] == "grüß!"
    assert site.requests[0].headers.getall("Content-Type") == ["text/x-mine"]


async def test_an_empty_answer_of_json_is_null() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=200, content_type="application/problem+json")

    async with serving(answer) as site, http() as task:
        assert (await send(task, url=site.url()))["body"] is None


async def test_idempotency_key_is_the_same_for_every_attempt_and_for_writing_only() -> None:
    async with serving(plain) as site, http() as task:
        await send(task, url=site.url())
        await send(task, url=site.url(), method="POST", headers={"idempotency-key": "mine"})
        await send(task, url=site.url(), method="DELETE")
    get, post, delete = (request.headers.getall("Idempotency-Key", []) for request in site.requests)
    assert (get, post) == ([], ["mine"])
    assert delete[0].endswith("/0/charge/0")


@pytest.mark.parametrize("status", [302, 400, 404, 409, 429, 500, 503])
async def test_a_status_that_is_not_expected_names_the_error(status: int) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"why": "no"}, status=status)

    async with serving(answer) as site, http() as task:
        kind, message, details = await fails(task, url=site.url("/a?key=private"))
        assert kind == f"http_{status}"
        assert f"/a: {status} " in message
        assert "expected 2xx" in message
        assert "private" not in message
        assert (details["status"], details["body"]) == (status, {"why": "no"})
        assert details["headers"]["content-type"].startswith("application/json")
        assert (await send(task, url=site.url(), expect=[status, 200]))["status"] == status


async def test_a_success_that_is_not_expected_is_an_error_too() -> None:
    async with serving(plain) as site, http() as task:
        kind, message, _ = await fails(task, url=site.url(), expect=[201, 202])
    assert kind == "http_200"
    assert "expected 201 or 202" in message


async def test_the_body_of_an_error_is_bounded() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=500, body=b"[" + b"1," * 1_000_000 + b"1]", content_type="application/json")

    async with serving(answer) as site, http() as task:
        _, _, details = await fails(task, url=site.url())
    assert len(details["body"]) == 16_384
    assert isinstance(details["body"], str)


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_huge_answer_is_not_read(chunked: bool) -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        response.content_length = None if chunked else 1 << 40
        await response.prepare(request)
        for _ in range(100_000):
            await response.write(b"x" * 65_536)
            sent += 65_536
        return response

    async with serving(answer) as site, http(limit=100_000) as task:
        kind, message, _ = await fails(task, url=site.url())
    assert kind == "output_too_large"
    assert "100,000 bytes" in message
    assert sent < 64 * 1024 * 1024


async def test_an_answer_of_just_the_limit_is_kept() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1_000)

    async with serving(answer) as site, http(limit=1_000) as task:
        assert len((await send(task, url=site.url()))["body"]) == 1_000
    async with serving(answer) as site, http(limit=999) as task:
        assert (await fails(task, url=site.url()))[0] == "output_too_large"


async def test_an_answer_that_cannot_be_understood() -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/zip":
            return web.Response(body=gzip.compress(b"0" * 1_000_000), headers={"Content-Encoding": "gzip"})
        return web.Response(text="{oops", content_type="application/json")

    async with serving(answer) as site, http() as task:
        assert (await fails(task, url=site.url("/zip")))[0] == "http_invalid_response"
        kind, message, _ = await fails(task, url=site.url())
        assert site.requests[0].headers["Accept-Encoding"] == "identity"
    assert kind == "http_invalid_response"
    assert "is no JSON" in message


async def test_headers_are_bounded() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(headers={f"X-{number}": "v" * 100 for number in range(100)})

    async with serving(answer) as site, http() as task:
        headers = (await send(task, url=site.url()))["headers"]
    assert 40 < len(headers) <= 64
    assert all(name == name.lower() for name in headers)


async def test_what_is_no_http_is_an_invalid_response() -> None:
    async def garbage(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"this is no HTTP\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(garbage, "127.0.0.1", 0) as server, http() as task:
        port = server.sockets[0].getsockname()[1]
        assert (await fails(task, url=f"http://127.0.0.1:{port}/"))[0] == "http_invalid_response"


async def test_nobody_there_and_gone_in_the_middle_are_unreachable() -> None:
    async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with http() as task:
        assert (await fails(task, url=f"http://127.0.0.1:{port}/"))[0] == "http_unreachable"
        async with await asyncio.start_server(gone, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert (await fails(task, url=f"http://127.0.0.1:{port}/"))[0] == "http_unreachable"


@pytest.mark.parametrize("begun", [True, False])
async def test_a_slow_answer_times_out(begun: bool) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if begun:
            await response.prepare(request)
            await response.write(b"x")
        await asyncio.Event().wait()
        return response

    async with serving(answer) as site, http() as task:
        kind, message, _ = await fails(task, url=site.url(), timeout="50ms")
    assert kind == "timeout"
    assert "timeout of the input" in message


async def test_a_connection_that_does_not_come_about_times_out() -> None:
    with socket.socket() as full:  # whose queue of connections is full, so that further ones wait
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        async with http(replace(LOOPBACK, connect_timeout_ms=200)) as task:
            kind, message, _ = await fails(task, url=f"http://127.0.0.1:{full.getsockname()[1]}/")
        for one in waiting:
            one.close()
    assert (kind, "could not connect in time" in message) == ("timeout", True)


def later(seconds: int) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("status", "pause", "low", "high"),
    [
        (429, "7", 7_000, 7_000),
        (503, 600, 500_000, 600_000),
        (503, -600, 0, 0),
        (429, "9" * 30, 86_400_000, 86_400_000),
        (429, "soon", None, None),
        (500, "7", None, None),
        (429, None, None, None),
    ],
)
async def test_the_pause_that_a_server_asks_for(
    status: int, pause: str | int | None, low: int | None, high: int | None
) -> None:
    async def answer(_: web.Request) -> web.Response:
        header = later(pause) if isinstance(pause, int) else pause
        return web.Response(status=status, headers={"Retry-After": header} if header else {})

    async with serving(answer) as site, http() as task:
        with pytest.raises(BuiltinError) as caught:
            await send(task, url=site.url())
    if low is None or high is None:
        assert caught.value.after_ms is None
    else:
        assert caught.value.after_ms is not None
        assert low <= caught.value.after_ms <= high


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["url: is missing"]),
    ({"url": 5}, ["url: is a number"]),
    ({"url": "/relative"}, ["url: is no absolute http or https URL"]),
    ({"url": "ftp://a/b"}, ["url: is no absolute"]),
    ({"url": "http://"}, ["url: is no"]),
    ({"url": "http://a:99999/"}, ["url: is no URL"]),
    ({"url": "http://a b/"}, ["url: has a space"]),
    ({"url": "https://ann:secret@a/"}, ["url: holds a user or a password"]),
    ({"url": "http://a/", "method": "BREW"}, ["method: is 'BREW'; expected one of GET"]),
    ({"url": "http://a/", "metod": "GET"}, ["metod: is no field", "did you mean method?"]),
    ({"url": "http://a/", "query": {"a": {"b": 1}}}, ["query.a: is an object"]),
    ({"url": "http://a/", "headers": {"a b": "c"}}, ["headers.a b: is no header"]),
    ({"url": "http://a/", "headers": {"Host": "c"}}, ["headers.Host: is set by the worker"]),
    ({"url": "http://a/", "headers": {"X": "a\r\nY: b"}}, ["headers.X: has a character"]),
    ({"url": "http://a/", "headers": {"X": "1", "x": "2"}}, ["headers.x: is given twice"]),
    ({"url": "http://a/", "headers": []}, ["headers: is a list"]),
    ({"url": "http://a/", "body": 1}, ["body: does not go with GET"]),
    ({"url": "http://a/", "method": "POST", "body": 1, "text": "a"}, ["text: stands beside body"]),
    ({"url": "http://a/", "expect": []}, ["expect: is no list of statuses"]),
    ({"url": "http://a/", "expect": [200, "x"]}, ["expect: is no list"]),
    ({"url": "http://a/", "timeout": "soon"}, ["timeout: 'soon' is not a duration"]),
    ({"url": "http://a/", "timeout": "0s"}, ["timeout: is 0"]),
    ({"url": "http://a/", "credentials": "a b"}, ["credentials: 'a b' does not fit"]),
    ({"method": "BREW", "expect": 99, "timeout": 3}, ["url: is missing", "method:", "expect:", "timeout: is a number"]),
]


@pytest.mark.parametrize(("value", "problems"), WRONG)
async def test_every_problem_of_an_input_is_named_at_once(value: dict[str, Json], problems: list[str]) -> None:
    async with http() as task:
        kind, message, details = await fails(task, **value)
    assert kind == "invalid_input"
    assert [problem for problem in problems if problem not in message] == []
    assert len(details["problems"]) == len([problem for problem in problems if not problem.startswith("did you")])
    assert "secret" not in message
