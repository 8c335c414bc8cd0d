"""Reads a Dockerfile: stages of instructions, with continued lines joined and variables filled in by who executes them.

Purpose: one source of truth for `docker build` and for the builder without Docker. Invariant: what is not understood is
refused, never skipped. Trade-off: the part of the language that this repository uses, no heredocs and no wildcards.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.images.errors import ImageError

KNOWN = frozenset(
    {
        "ARG",
        "CMD",
        "COPY",
        "ENTRYPOINT",
        "ENV",
        "EXPOSE",
        "FROM",
        "LABEL",
        "RUN",
        "STOPSIGNAL",
        "USER",
        "VOLUME",
        "WORKDIR",
    }
)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in capitals, its flags (`--from=x`), the rest, and the line it begins at."""

    name: str
    flags: dict[str, str]
    value: str
    line: int

    def words(self) -> list[str]:
        """Return the rest as words, quotes resolved."""
        return shlex.split(self.value)

    def pairs(self) -> dict[str, str]:
        """Return the rest as NAME=VALUE pairs."""
        return dict(word.split("=", 1) for word in self.words())

    def vector(self) -> list[str]:
        """Return the rest as an argument vector; ImageError when it is in shell form."""
        try:
            found = json.loads(self.value)
        except ValueError as error:
            raise ImageError(f'line {self.line}: {self.name}: expected the exec form, such as ["partita"]') from error
        return [str(word) for word in found]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: what it starts from, its name ("" for an unnamed one), its instructions."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """The arguments before the first stage, and the stages in order."""

    arguments: dict[str, str]
    stages: tuple[Stage, ...]


def read(path: Path) -> Dockerfile:
    """Read a file; ImageError for what is not understood."""
    return parse(path.read_text("utf-8"))


def parse(text: str) -> Dockerfile:
    """Parse a Dockerfile's text."""
    arguments: dict[str, str] = {}
    stages: list[tuple[str, str, list[Instruction]]] = []
    for instruction in map(_instruction, _logical_lines(text)):
        if instruction.name == "FROM":
            stages.append((*_origin(instruction, arguments), []))
        elif stages:
            stages[-1][2].append(instruction)
        elif instruction.name == "ARG":
            arguments.update([argument(instruction)])
        else:
            raise ImageError(f"line {instruction.line}: {instruction.name} before the first FROM")
    return Dockerfile(arguments, tuple(Stage(base, name, tuple(inside)) for base, name, inside in stages))


def argument(instruction: Instruction) -> tuple[str, str]:
    """Return the name of an ARG and its default ("" without one)."""
    name, _, default = instruction.value.partition("=")
    return name, default


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Fill in $NAME, ${NAME} and ${NAME:-default}; ImageError for a variable that nothing declares."""

    def value(found: re.Match[str]) -> str:
        name, default = found[1] or found[2], found[3]
        if name not in variables and default is None:
            raise ImageError(f"${{{name}}}: neither an ARG nor an ENV of this stage")
        return variables.get(name) or default or ""

    return _VARIABLE.sub(value, text)


def _origin(instruction: Instruction, arguments: Mapping[str, str]) -> tuple[str, str]:
    words = expand(instruction.value, arguments).split()
    if len(words) == 1:
        return words[0], ""
    if len(words) == 3 and words[1].upper() == "AS":
        return words[0], words[2]
    raise ImageError(f"line {instruction.line}: FROM {instruction.value}: expected FROM image [AS name]")


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    continued = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        body = line.rstrip().removesuffix("\\").strip()
        if continued:
            lines[-1] = (lines[-1][0], f"{lines[-1][1]} {body}")
        else:
            lines.append((number, body))
        continued = line.rstrip().endswith("\\")
    return lines


def _instruction(numbered: tuple[int, str]) -> Instruction:
    number, line = numbered
    name, _, rest = line.partition(" ")
    if name.upper() not in KNOWN:
        raise ImageError(f"line {number}: {name}: expected one of {', '.join(sorted(KNOWN))}")
    flags: dict[str, str] = {}
    while (found := re.match(r"--([a-z]+)=(\S+)\s+", rest)) is not None and name.upper() in {"COPY", "FROM", "RUN"}:
        flags[found[1]] = found[2]
        rest = rest[found.end() :]
    return Instruction(name.upper(), flags, rest.strip(), number)
