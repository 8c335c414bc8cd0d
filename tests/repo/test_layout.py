"""The shape of the tree: where files may lie and how long they may be."""

from __future__ import annotations

import ast
import re

from tests.repo.tree import ROOT, SOURCE, files, files_of, short, text

FILE_LINES = 500
FUNCTION_LINES = 80


def test_the_source_root_is_no_package() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists(), "it would shadow the standard library's module operator"


def test_no_source_file_is_long() -> None:
    lengths = {short(path): text(path).count("\n") for path in files_of(".py", ".sql") if SOURCE in path.parents}
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_long() -> None:
    found = {}
    for path in files_of(".py"):
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LINES:
                    found[f"{short(path)}:{node.lineno} {node.name}"] = lines
    assert found == {}


def test_every_package_folder_says_what_it_is_for() -> None:
    packages = {path.parent for path in files_of(".py") if SOURCE in path.parents}
    missing = [short(folder) for folder in sorted(packages) if not (folder / "__init__.py").exists()]
    assert missing == []
    undocumented = [
        short(path)
        for path in files_of(".py")
        if (ROOT / "operator") in path.parents and ast.get_docstring(ast.parse(text(path))) is None
    ]
    assert undocumented == []


def test_the_map_of_the_state_machine_is_true() -> None:
    folder = SOURCE / "domain" / "state"
    listed = re.findall(
        r"^- [^:]*: (.*)$", ast.get_docstring(ast.parse(text(folder / "__init__.py"))) or "", re.MULTILINE
    )
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    place = {name: line for line, words in enumerate(listed) for name in re.findall(r"\w+", words) if name in modules}
    assert place.keys() == modules
    imports = re.compile(r"^from partita\.domain\.state\.(\w+) import", re.MULTILINE)
    upwards = [
        f"{name} imports {other}"
        for name in sorted(modules)
        for other in imports.findall(text(folder / f"{name}.py"))
        if place[other] > place[name]
    ]
    assert upwards == []


def test_no_large_or_binary_files() -> None:
    large = [short(path) for path in files() if path.stat().st_size > 512 * 1024]
    assert large == []
    binary = [short(path) for path in files() if path.stat().st_size and not text(path) and path.suffix != ".png"]
    assert binary == []
