"""What the documents tell people to type works, and what they show parses."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from partita.cli.checks import check_file
from tests.cli.commands import commands
from tests.docs.blocks import DOCUMENTS, ROOT, SHELL, SHOWN, Block, blocks

EVERY = blocks()
LOCAL = [block for block in EVERY if block.language in SHELL and not block.how]
COMMANDS = dict(commands())
MENTION = re.compile(r"(?:^|[`$|(] ?)(?:\.venv/bin/)?(?:kubectl )?partita ((?:[a-z]+)\b[^`|&\n]*)", re.MULTILINE)


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    known = (*SHELL, *SHOWN, "python", "yaml", "json", "dockerfile")
    assert [f"{block}: {block.language}" for block in EVERY if block.language not in known] == []
    assert [f"{block}: {block.why}" for block in EVERY if block.how == "run" and block.why != "cluster"] == []


@pytest.mark.parametrize("block", LOCAL, ids=str)
def test_commands_run(block: Block, database_url: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PARTITA_DATABASE_URL": database_url,
        "KUBECONFIG": str(tmp_path / "none"),
    }
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{block}:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("block", [block for block in EVERY if block.language == "python"], ids=str)
def test_python_can_be_imported(block: Block) -> None:
    code = compile(block.text, str(block), "exec")
    exec(code, ModuleType("shown").__dict__)  # noqa: S102  # it is this repository's own


def test_manifests_are_good(tmp_path: Path) -> None:
    file = tmp_path / "shown.yaml"
    found = []
    for block in (block for block in EVERY if block.language == "yaml"):
        documents = list(yaml.safe_load_all(block.text))
        if all(isinstance(document, dict) and "kind" in document for document in documents) and not foreign(documents):
            file.write_text(block.text)
            found += [f"{block}: {problem}" for finding in check_file(file) for problem in finding.problems]
    assert found == []


def foreign(documents: list[dict[str, object]]) -> bool:
    """Whether they are shown beside ours, for comparison."""
    return all(document["apiVersion"] == "argoproj.io/v1alpha1" for document in documents)


def test_json_can_be_read() -> None:
    for block in (block for block in EVERY if block.language == "json"):
        json.loads(block.text)


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path.exists()], ids=lambda path: str(path.name))
def test_every_command_that_is_mentioned_exists(document: Path) -> None:
    wrong = [words for words in MENTION.findall(document.read_text(encoding="utf-8")) if not _exists(words)]
    assert wrong == []


def _exists(text: str) -> bool:
    """Whether the words name a command of ours and options that it has."""
    words = _words(text)
    if "|" in words[-1]:  # `partitions ensure|drop|status`
        return all(_exists(" ".join((*words[:-1], last))) for last in words[-1].split("|"))
    path = next((tuple(words[:count]) for count in (2, 1) if tuple(words[:count]) in COMMANDS), None)
    if path is None:
        return (words[0],) in {known[:1] for known in COMMANDS} and len(words) == 1
    options = {name for parameter in COMMANDS[path].params for name in parameter.opts} | {"--help", "-h"}
    return all(word.partition("=")[0] in options for word in words[len(path) :] if re.match(r"--?[a-z]", word))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def test_the_page_of_the_command_line_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "cli_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("list -A", True),
        ("partitions drop", True),
        ("partitions", True),
        ("partitions remove", False),
        ("launch", False),
        ("list --colour", False),
        ("signal order-1 approval '{}' --id x", True),
    ],
)
def test_the_check_of_mentions_itself(text: str, right: bool) -> None:
    assert _exists(text) is right
