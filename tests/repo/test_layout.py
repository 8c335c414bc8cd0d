"""The shape of the tree: where files may lie and how long they may be."""

from __future__ import annotations

import ast

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


def test_no_large_or_binary_files() -> None:
    large = [short(path) for path in files() if path.stat().st_size > 512 * 1024]
    assert large == []
    binary = [short(path) for path in files() if path.stat().st_size and not text(path) and path.suffix != ".png"]
    assert binary == []
