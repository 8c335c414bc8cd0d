"""Which addresses may be reached: what is inside a network is not, however it is written."""

from __future__ import annotations

import pytest

from partita.domain.errors import InvalidError
from partita.settings import Settings
from partita.targets import Targets, covers, is_loopback, is_numeric, target_problem

NOBODY = Targets.of(())
INSIDE = [
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1"),  # noqa: S104  # addresses to refuse
    *("169.254.169.254", "168.63.129.16", "192.0.0.192", "100.100.100.200", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "198.18.0.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1"),
    *("64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:db8::1", "fec0::1"),
    *("2130706433", "127.1", "0x7f000001", "0177.0.0.1", "127.0.0.01", "١٢٧.0.0.1", "", "name"),
]
PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not NOBODY.allows_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_allowed(address: str) -> None:
    assert NOBODY.allows_address(address)


def test_networks_and_hosts_are_allowed_by_the_setting() -> None:
    targets = Targets.of(("10.0.0.0/8", "::1", "fd00::/8", "Api.Internal", "*.svc.cluster.local"))
    assert all(map(targets.allows_address, ("10.9.9.9", "::ffff:10.0.0.1", "::1", "fd00::5")))
    assert not any(map(targets.allows_address, ("11.0.0.1.2", "127.0.0.1", "fe80::1")))
    assert all(
        map(targets.allows_name, ("api.internal", "API.INTERNAL.", "a.svc.cluster.local", "a.b.svc.cluster.local"))
    )
    assert not any(
        map(targets.allows_name, ("svc.cluster.local", "xsvc.cluster.local", "api.internal.evil", "10.0.0.1"))
    )


@pytest.mark.parametrize("host", ["1.2.3.4", "127.1", "2130706433", "0x7f.1", "a.0x10", "::1", "1.2.3.4."])
def test_addresses_in_any_spelling_are_told_from_names(host: str) -> None:
    assert is_numeric(host)


@pytest.mark.parametrize("host", ["example.com", "0x7f.com", "1.example", "localhost", "a1"])
def test_names_are_names(host: str) -> None:
    assert not is_numeric(host)


def test_loopback_is_a_literal_or_localhost() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1", "localhost", "LOCALHOST.")))
    assert not any(map(is_loopback, ("10.0.0.1", "localhost.example.com", "127.1", "example.com")))


def test_patterns_cover_names_below() -> None:
    assert covers({"*.example.com"}, "a.example.com")
    assert not covers({"*.example.com"}, "example.com")


@pytest.mark.parametrize("text", ["", "a.b, *.c.d", "10.0.0.0/8,::1", "localhost", "10.0.0.1/8"])
def test_settings_that_can_be_read(text: str) -> None:
    assert target_problem(text) == ""


@pytest.mark.parametrize("text", ["http://a", "a:80", "10.0.0.0/99", "*", "a.*.b", "127.1", "a b"])
def test_settings_that_cannot_be_read(text: str) -> None:
    assert "is neither a host" in target_problem(text)
    with pytest.raises(InvalidError, match=r"PARTITA_WORKER_HTTP_ALLOWED_TARGETS.*neither a host"):
        Settings.load({"PARTITA_WORKER_HTTP_ALLOWED_TARGETS": text})


def test_the_setting_is_read() -> None:
    settings = Settings.load(
        {"PARTITA_WORKER_HTTP_ALLOWED_TARGETS": "a.b, 10.0.0.0/8", "PARTITA_HTTP_CREDENTIALS_X": "y"}
    )
    assert settings.worker_http.allowed_targets == ("a.b", "10.0.0.0/8")
