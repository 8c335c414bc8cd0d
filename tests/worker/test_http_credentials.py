"""Credentials: by name, for their hosts only, and never to be read anywhere."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from aiohttp import web

from partita.domain.errors import InvalidError
from partita.settings import WorkerHttpSettings
from partita.worker.builtins.credentials import Credentials, CredentialsRefusedError
from partita.worker.failures import TaskError
from tests.worker.web import Names, fails, http, plain, send, serving

SECRET = "s3cr3t/t0ken+x"
ENVIRON = {
    "PARTITA_HTTP_CREDENTIALS_SHOP_API": f"Authorization: Bearer {SECRET}",
    "PARTITA_HTTP_CREDENTIALS_SHOP_API_HOSTS": "127.0.0.1, api.example.com, *.shop.example",
}
SHOP: dict[str, Any] = {"credentials": "shop-api"}


async def test_a_credential_is_sent_to_its_host() -> None:
    async with serving(plain) as site, http(environ=ENVIRON) as task:
        await send(task, url=site.url(), **SHOP)
        await send(task, url=site.url(), headers={"authorization": "mine"}, **SHOP)
        await send(task, url=site.url())
    sent = [request.headers.getall("Authorization", []) for request in site.requests]
    assert sent == [[f"Bearer {SECRET}"], [f"Bearer {SECRET}"], []]


async def test_it_is_sent_to_no_other_host() -> None:
    names = Names({"evil.example": [["127.0.0.1"]]})
    async with serving(plain) as site, http(environ=ENVIRON, resolver=names) as task:
        kind, message, _ = await fails(task, url=site.url(host="evil.example"), **SHOP)
        assert site.requests == []
    assert kind == "http_credentials"
    assert "are not for evil.example; expected a host of PARTITA_HTTP_CREDENTIALS_SHOP_API_HOSTS" in message


async def test_it_is_not_sent_in_the_clear() -> None:
    names = Names({"api.example.com": [["127.0.0.1"]]})
    async with serving(plain) as site, http(environ=ENVIRON, resolver=names) as task:
        kind, message, _ = await fails(task, url=site.url(host="api.example.com"), **SHOP)
        assert site.requests == []
    assert (kind, "are not sent over http; expected https" in message) == ("http_credentials", True)
    found = Credentials(ENVIRON).get("Shop-Api")
    found.check("https", "API.example.com")
    found.check("https", "a.shop.example")
    with pytest.raises(CredentialsRefusedError, match="are not for shop"):
        found.check("https", "shop.example")


async def test_loopback_in_the_clear_needs_to_be_allowed() -> None:
    async with serving(plain) as site, http(WorkerHttpSettings(), environ=ENVIRON) as task:
        assert (await fails(task, url=site.url(), **SHOP))[0] == "http_forbidden_target"
        assert site.requests == []


@pytest.mark.parametrize("target", ["http://localhost:{port}/", "http://127.0.0.1:{port}/"])
async def test_a_redirect_does_not_take_it_elsewhere(target: str) -> None:
    async with serving(plain) as other:

        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": target.format(port=other.port)})

        async with serving(answer) as site, http(environ=ENVIRON) as task:
            assert (await fails(task, url=site.url(), **SHOP))[0] == "http_307"
        assert other.requests == []


async def test_an_unknown_name_is_said() -> None:
    async with http(environ=ENVIRON) as task:
        kind, message, _ = await fails(task, url="https://api.example.com/", credentials="bank")
    assert kind == "http_credentials"
    assert "this worker has none; expected PARTITA_HTTP_CREDENTIALS_BANK" in message


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
async def test_what_an_answer_repeats_is_masked(status: int, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: web.Request) -> web.Response:
        value = request.headers["Authorization"]
        escaped = value.replace("/", r"\/")
        text = f'{{"a": "{value}", "b": "{escaped}", "c": "{SECRET}"}}'
        return web.Response(status=status, text=text, content_type=kind, headers={"X-Seen": value}, reason=value)

    caplog.set_level(logging.DEBUG)
    found = ""
    async with serving(answer) as site, http(environ=ENVIRON) as task:
        try:
            found = str(await send(task, url=site.url(), **SHOP))
        except TaskError as error:
            found = f"{error} {error.details} {error!r} {error.__cause__} {error.__context__}"
    assert "***" in found
    assert SECRET not in found
    assert SECRET.replace("/", r"\/") not in found
    assert SECRET not in caplog.text
    assert SECRET not in repr(Credentials(ENVIRON).get("shop-api"))


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"A": "hunter2", "A_HOSTS": "a.b"}, "PARTITA_HTTP_CREDENTIALS_A: is no header"),
        ({"A": "Authorization: hunter2\nX: y", "A_HOSTS": "a.b"}, "PARTITA_HTTP_CREDENTIALS_A: is no header"),
        ({"A": "Authorization: hunter2"}, "names no hosts; expected PARTITA_HTTP_CREDENTIALS_A_HOSTS"),
        ({"A": "Authorization: hunter2", "A_HOSTS": "https://a"}, "neither a host"),
        ({"A": "Authorization: hunter2", "A_HOSTS": "10.0.0.0/8"}, "holds a network"),
        ({"A_HOSTS": "a.b"}, "belongs to no credential"),
    ],
)
def test_a_bad_environment_is_said_without_its_secret(variables: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidError) as caught:
        Credentials({f"PARTITA_HTTP_CREDENTIALS_{name}": value for name, value in variables.items()})
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)
