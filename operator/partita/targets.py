"""Which addresses a request of a task may go to.

Purpose: workers stand inside a network that their workflows' authors need not be trusted with. Invariant: an address is
judged by what it finally reaches, so that IPv4 inside IPv6 (mapped, 6to4, NAT64, Teredo) is judged as IPv4; whatever is
not public is refused unless a setting allows the host's name or the network. Trade-off: a name that is allowed is
trusted with all of its addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST: Final = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_NOT_PUBLIC: Final = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # special purposes, among them a metadata service; Python's lists of it vary by version
            "168.63.129.16/32",  # a public address that is the metadata service of a cloud
        ),
    )
)
_UNICAST: Final = ip_network("2000::/3")
"""All global IPv6 addresses there are; everything else is a site's, a machine's or given up."""
_NAT64: Final = ip_network("64:ff9b::/96")


def target_problem(text: str) -> str:
    """What is wrong with a setting that lists hosts and networks, separated by commas; empty if nothing is."""
    for part in filter(None, map(str.strip, text.split(","))):
        if _network(part) is None and (not _HOST.fullmatch(part.lower()) or is_numeric(part)):
            return f"{part[:80]!r} is neither a host (api.example.com, *.example.com) nor a network (10.0.0.0/8)"
    return ""


@dataclass(frozen=True, slots=True)
class Targets:
    """What is allowed besides public addresses."""

    hosts: frozenset[str]
    """Lower-case names; one that begins with ``*.`` stands for every name below it."""
    networks: tuple[Network, ...]

    @classmethod
    def of(cls, allowed: Iterable[str]) -> Targets:
        """Read the entries of a setting that ``target_problem`` finds good."""
        networks = {part: _network(part) for part in allowed}
        return cls(
            frozenset(part.lower() for part, network in networks.items() if network is None),
            tuple(network for network in networks.values() if network is not None),
        )

    def allows_name(self, host: str) -> bool:
        """Whether the setting names this host, whatever its addresses are."""
        return covers(self.hosts, host)

    def allows_address(self, address: str) -> bool:
        """Whether an address (a literal of any kind) is public or in an allowed network."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        final = _final(found)
        return _is_public(final) or any(final in network or found in network for network in self.networks)


def covers(patterns: Iterable[str], host: str) -> bool:
    """Whether one of these names (``*.`` stands for every name below) is this host."""
    name = host.lower().rstrip(".")
    return any(name == one or (one.startswith("*.") and name.endswith(one[1:])) for one in patterns)


def is_numeric(host: str) -> bool:
    """Whether a host is an address, in any spelling that C libraries take (``127.1``, ``0x7f…``), and no name."""
    return ":" in host or bool(_NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself: a loopback address as a literal, or ``localhost``."""
    try:
        return _final(ip_address(host)).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _network(text: str) -> Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _final(address: Address) -> Address:
    """The address that a packet finally reaches."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    return IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else address


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    special = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_loopback
    return address.is_global and not special and not any(address in network for network in _NOT_PUBLIC)
