"""The dependencies: those of the package are what it imports, and the pins agree with pyproject.toml and each other."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repo.tree import ROOT, SOURCE, files_of, text

FOLDER = ROOT / "requirements"
FILES = ("runtime.txt", "dev.txt", "bench.txt")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
RUNTIME = PROJECT["project"]["dependencies"]
DEVELOPMENT = [
    *RUNTIME,
    *PROJECT["project"]["optional-dependencies"]["embedded"],
    *PROJECT["dependency-groups"]["dev"],
    *PROJECT["build-system"]["requires"],
    "editables",
]
WANTED = {"runtime.txt": RUNTIME, "dev.txt": DEVELOPMENT, "bench.txt": PROJECT["dependency-groups"]["bench"]}


def pins(file: str) -> list[tuple[Requirement, list[str]]]:
    """Every pinned package of a file with its hashes."""
    joined = re.sub(r"\\\n\s*", " ", text(FOLDER / file))
    entries = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [(Requirement(re.split(r"\s--hash", entry)[0]), re.findall(r"--hash=(\S+)", entry)) for entry in entries]


def imported(path: Path) -> set[str]:
    """Names of the top-level modules that a file imports."""
    nodes = list(ast.walk(ast.parse(text(path))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.partition(".")[0] for name in plain | {str(n.module) for n in nodes if isinstance(n, ast.ImportFrom)}}


def test_the_package_depends_on_what_it_imports_and_on_nothing_else() -> None:
    modules = set().union(*(imported(path) for path in files_of(".py") if SOURCE in path.parents))
    modules -= {*sys.stdlib_module_names, "partita"}
    providers = packages_distributions()
    found = {canonicalize_name(name) for module in modules for name in providers[module]}
    optional = {
        canonicalize_name(Requirement(wanted).name)
        for wanted in PROJECT["project"]["optional-dependencies"]["embedded"]
    }
    assert found - optional == {canonicalize_name(Requirement(wanted).name) for wanted in RUNTIME}


@pytest.mark.parametrize("file", FILES)
def test_every_package_is_pinned_with_hashes_and_nothing_else_is_said(file: str) -> None:
    assert pins(file)
    for requirement, hashes in pins(file):
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), requirement
        assert requirement.url is None, requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes), requirement


@pytest.mark.parametrize("file", FILES)
def test_what_the_project_wants_is_pinned_at_a_version_that_fits(file: str) -> None:
    pinned = [requirement for requirement, _ in pins(file)]
    for wanted in map(Requirement, WANTED[file]):
        same = [pin for pin in pinned if canonicalize_name(pin.name) == canonicalize_name(wanted.name)]
        assert same, f"{wanted}: not in {file}; try: make lock"
        for pin in same:
            version = str(pin.specifier).removeprefix("==")
            assert wanted.specifier.contains(version, prereleases=True), f"{wanted}: {pin} in {file}; try: make lock"


def test_the_files_agree() -> None:
    versions: dict[tuple[str, str], set[str]] = {}
    for file in FILES:
        for requirement, _ in pins(file):
            key = (canonicalize_name(requirement.name), str(requirement.marker))
            versions.setdefault(key, set()).add(str(requirement.specifier))
    assert {key: found for key, found in versions.items() if len(found) > 1} == {}


def test_runtime_is_part_of_development() -> None:
    names = {file: {canonicalize_name(requirement.name) for requirement, _ in pins(file)} for file in FILES}
    assert names["runtime.txt"] <= names["dev.txt"]


def test_no_other_list_of_versions() -> None:
    others = [
        name for name in ("uv.lock", "poetry.lock", "Pipfile.lock", "requirements.txt") if Path(ROOT / name).exists()
    ]
    assert others == []
