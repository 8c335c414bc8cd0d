"""Secrets that requests are sent with, by name, from the worker's environment.

Invariant: a credential leaves the worker only in a request to one of its hosts, over TLS (or to a loopback address that
is allowed), and what an answer repeats of it is masked before anything is recorded. No error, no log line and no
``repr`` holds it. Trade-off: the environment is read once, so a new secret needs a new process, like any setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from partita.domain.errors import InvalidError, Problem
from partita.targets import covers, is_loopback, target_problem

PREFIX: Final = "PARTITA_HTTP_CREDENTIALS_"
NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\Z")
"""A name as manifests write it; in the environment it is upper-case with underscores."""
_HOSTS: Final = "_HOSTS"
_LINE: Final = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)\Z")
_MASK: Final = "***"
_SHORTEST_MASKED: Final = 6
"""Characters of a part that is masked by itself; shorter ones occur by chance."""


class CredentialsRefusedError(Exception):
    """The credential does not exist here, or must not go to this target; the text says which."""


@dataclass(frozen=True, slots=True)
class Credential:
    """One header and where it may go."""

    name: str
    header: str
    value: str = field(repr=False)
    hosts: frozenset[str]

    def check(self, scheme: str, host: str) -> None:
        """Raise CredentialsRefusedError unless it may be sent there."""
        if not covers(self.hosts, host):
            raise CredentialsRefusedError(
                f"credentials {self.name}: are not for {host}; expected a host of {_variable(self.name)}{_HOSTS}"
            )
        if scheme != "https" and not is_loopback(host):
            raise CredentialsRefusedError(f"credentials {self.name}: are not sent over {scheme}; expected https")

    def mask(self, text: str) -> str:
        """The text without the secret, for answers that repeat what they were asked."""
        for secret in sorted({self.value, *self.value.split()[1:]}, key=len, reverse=True):
            if len(secret) >= _SHORTEST_MASKED or secret == self.value:
                text = text.replace(secret, _MASK).replace(secret.replace("/", r"\/"), _MASK)
        return text


class Credentials:
    """All credentials of this process."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the environment; raises InvalidError that lists every bad variable, without its value."""
        self._known: dict[str, Credential] = {}
        problems: list[Problem] = []
        names = {name for name in environ if name.startswith(PREFIX)}
        for variable in sorted(names):
            if variable.endswith(_HOSTS) and variable.removesuffix(_HOSTS) in names:
                continue
            problem = self._read(variable, environ)
            if problem:
                problems.append(Problem(variable, problem))
        if problems:
            raise InvalidError("credentials", tuple(problems))

    def get(self, name: str) -> Credential:
        """The credential of this name; raises CredentialsRefusedError."""
        found = self._known.get(_variable(name))
        if found is None:
            raise CredentialsRefusedError(f"credentials {name}: this worker has none; expected {_variable(name)}")
        return found

    def _read(self, variable: str, environ: Mapping[str, str]) -> str:
        """Keep one credential; returns what is wrong with it."""
        line = _LINE.match(environ[variable].strip())
        hosts = environ.get(variable + _HOSTS, "").strip()
        if variable.endswith(_HOSTS):
            return f"belongs to no credential; expected {variable.removesuffix(_HOSTS)} beside it"
        if line is None:
            return "is no header; expected a line such as Authorization: Bearer …"
        if not hosts:
            return f"names no hosts; expected {variable}{_HOSTS}, such as api.example.com"
        if problem := target_problem(hosts) or _network_problem(hosts):
            return f"{_HOSTS}: {problem}"
        patterns = frozenset(part.strip().lower() for part in hosts.split(",") if part.strip())
        name = variable.removeprefix(PREFIX)
        self._known[variable] = Credential(name, line[1], line[2], patterns)
        return ""


def _network_problem(hosts: str) -> str:
    return "holds a network; expected hosts, since a credential is for the name that a URL says" if "/" in hosts else ""


def _variable(name: str) -> str:
    return PREFIX + name.upper().replace("-", "_")
