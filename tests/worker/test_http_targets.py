"""Where ``partita.http`` goes, and where it does not: names, literals, redirects."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from partita.settings import WorkerHttpSettings
from tests.worker.web import Names, fails, http, plain, send, serving

STRICT = WorkerHttpSettings()


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]"),
        *("[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "[fe80::1]", "10.0.0.1", "0"),
    ],
)
async def test_literals_and_names_of_the_inside_are_refused(host: str) -> None:
    async with serving(plain) as site, http(STRICT) as task:
        kind, message, _ = await fails(task, url=site.url(host=host))
        assert site.requests == []
    assert kind == "http_forbidden_target"
    assert "PARTITA_WORKER_HTTP_ALLOWED_TARGETS" in message


async def test_a_name_is_judged_by_its_addresses() -> None:
    names = Names({"inside.example": [["127.0.0.1", "10.0.0.1"]], "mapped.example": [["::ffff:127.0.0.1"]]})
    async with serving(plain) as site, http(STRICT, resolver=names) as task:
        assert (await fails(task, url=site.url(host="inside.example")))[0] == "http_forbidden_target"
        assert (await fails(task, url=site.url(host="mapped.example")))[0] == "http_forbidden_target"
        assert (await fails(task, url=site.url(host="unknown.example")))[0] == "http_unreachable"
        assert site.requests == []


async def test_only_the_allowed_addresses_of_a_name_are_connected_to() -> None:
    names = Names({"both.example": [["127.0.0.2", "127.0.0.1"]]})
    async with serving(plain) as site, http(resolver=names) as task:
        assert (await send(task, url=site.url(host="both.example")))["status"] == 200


async def test_a_name_that_changes_its_address_is_not_followed_inside() -> None:
    """The address that was judged is the one that is used: there is no second lookup that could differ."""

    async def close(_: web.Request) -> web.Response:
        response = web.Response()
        response.force_close()
        return response

    names = Names({"rebind.example": [["127.0.0.1"], ["127.0.0.2"]]})
    async with serving(close) as outside, serving(plain, "127.0.0.2") as inside, http(resolver=names) as task:
        assert (await send(task, url=outside.url(host="rebind.example")))["status"] == 200
        assert names.asked == ["rebind.example"]
        assert (await fails(task, url=inside.url(host="rebind.example")))[0] == "http_forbidden_target"
        assert inside.requests == []


async def test_a_host_or_a_network_can_be_allowed() -> None:
    names = Names({"api.internal": [["127.0.0.1"]], "localhost": [["127.0.0.1"]]})
    for allowed in ("api.internal", "*.internal", "127.0.0.0/8"):
        settings = WorkerHttpSettings(allowed_targets=(allowed,))
        async with serving(plain) as site, http(settings, resolver=names) as task:
            assert (await send(task, url=site.url(host="api.internal")))["status"] == 200
    async with serving(plain, "::1") as site, http() as task:
        assert (await send(task, url=site.url()))["status"] == 200


async def test_localhost_is_this_machine_or_nothing() -> None:
    names = Names({"localhost": [["127.0.0.2", "10.0.0.1"]]})
    settings = WorkerHttpSettings(allowed_targets=("10.0.0.0/8",))
    async with http(settings, resolver=names) as task:
        assert (await fails(task, url="http://localhost:1/"))[0] == "http_forbidden_target"


@pytest.mark.parametrize(
    ("method", "status", "seen"),
    [
        ("GET", 301, "GET"), ("HEAD", 302, "HEAD"), ("POST", 302, "GET"), ("POST", 303, "GET"), ("PUT", 303, "GET"),
        ("POST", 307, "POST"), ("PUT", 308, "PUT"), ("PUT", 301, "PUT"), ("HEAD", 303, "HEAD"),
    ],
)  # fmt: skip  # one line each
async def test_redirects_of_the_same_server_are_followed(method: str, status: int, seen: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/a":
            return web.Response(status=status, headers={"Location": "../b?x=1#part"})
        return web.json_response({"method": request.method})

    body: dict[str, Any] = {"body": {"n": 1}} if method in {"POST", "PUT"} else {}
    async with serving(answer) as site, http() as task:
        output = await send(task, url=site.url("/a"), method=method, **body)
    assert (output["status"], site.requests[1].method, site.requests[1].path_qs) == (200, seen, "/b?x=1")
    kept = method == seen and bool(body)
    assert site.bodies[1] == (b'{"n":1}' if kept else b"")
    assert ("Idempotency-Key" in site.requests[1].headers, "Content-Type" in site.requests[1].headers) == (kept, kept)


@pytest.mark.parametrize(
    "location",
    ["http://localhost:{port}/", "https://127.0.0.1:{own}/", "//127.0.0.1:{port}/", "http://[", "", "gopher:x"],
)
async def test_redirects_to_elsewhere_are_answers(location: str) -> None:
    async with serving(plain) as other:

        async def answer(request: web.Request) -> web.Response:
            own = request.url.port
            return web.Response(status=302, headers={"Location": location.format(port=other.port, own=own)})

        async with serving(answer) as site, http() as task:
            kind, _, details = await fails(task, url=site.url())
            assert (kind, details["status"]) == ("http_302", 302)
            assert len(site.requests) == 1
        assert other.requests == []


async def test_a_circle_of_redirects_ends() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/again"})

    settings = WorkerHttpSettings(allowed_targets=("127.0.0.1",), redirects=3)
    async with serving(answer) as site, http(settings) as task:
        assert (await fails(task, url=site.url()))[0] == "http_307"
    assert len(site.requests) == 4


async def test_no_proxy_and_no_cookie_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(headers={"Set-Cookie": "session=1; Path=/"})

    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    names = Names({"shop.example": [["127.0.0.1"]]})
    async with serving(answer) as site, http(resolver=names) as task:
        await send(task, url=site.url(host="shop.example"))
        await send(task, url=site.url(host="shop.example"))
    assert "Cookie" not in site.requests[1].headers
