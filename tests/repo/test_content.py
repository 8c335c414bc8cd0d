"""What no file may hold: addresses of package registries, paths of one machine, unfinished work, bare exceptions."""

from __future__ import annotations

import re
from pathlib import Path

from tests.repo.tree import ROOT, files, files_of, short, text

REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("proxy", "golang", "org"),
            ("sum", "golang", "org"),
            ("registry", "npmjs", "org"),
            ("static", "crates", "io"),
            ("deb", "debian", "org"),
            ("registry", "k8s", "io"),
        )
    )
)
"""Spelled in parts, so that this file is not found by itself."""

UNFINISHED = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "raise NotImplemented" + "Error")))
SECRETS = re.compile("-----BEGIN [A-Z ]*PRIVATE" + " KEY-----|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}")
EXCEPTION = re.compile(r"#\s*(?:noqa|type: ignore)\b(?P<rest>.*)$")
WITH_REASON = re.compile(r"^(?:: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*|\[[a-z-]+(?:, ?[a-z-]+)*\])\s+(?:-|#)\s*\w+.*\w+")


def found(pattern: re.Pattern[str], paths: tuple[Path, ...]) -> list[str]:
    """Where a pattern occurs, as file:line."""
    return [
        f"{short(path)}:{number}: {line.strip()[:100]}"
        for path in paths
        for number, line in enumerate(text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_registry_is_named() -> None:
    assert found(REGISTRIES, files()) == []


def test_no_path_of_this_machine() -> None:
    folders = [str(Path.home()), str(ROOT), str(ROOT.parent), "/root", "/work"]
    roots = [re.escape(folder) + "/" for folder in folders if folder.count("/") > 1 or folder in {"/root", "/work"}]
    pattern = re.compile(r"(?<![\w.$}/-])(?:" + "|".join(roots) + ")")
    this = Path(__file__)
    assert found(pattern, tuple(path for path in files() if path != this)) == []


def test_nothing_is_left_unfinished() -> None:
    assert found(UNFINISHED, files_of(".py", ".sql", ".sh", ".yaml", ".toml")) == []


def test_no_secret() -> None:
    assert found(SECRETS, files()) == []


def test_every_exception_from_a_rule_has_its_reason() -> None:
    bare = []
    for path in files_of(".py"):
        for number, line in enumerate(text(path).splitlines(), 1):
            exception = EXCEPTION.search(line)
            if exception and path != Path(__file__) and not WITH_REASON.match(exception["rest"]):
                bare.append(f"{short(path)}:{number}: {line.strip()[-80:]}")
    assert bare == []
