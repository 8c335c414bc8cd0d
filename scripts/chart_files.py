#!/usr/bin/env python3
"""Makes the files of the Helm chart that follow from others.

usage: chart_files.py [--check]     writes them; --check only says which are out of date (exit code 1 if any is)

values.yaml, values.schema.json and the table in README.md come from scripts/chart_values, whose settings come from
operator/partita/settings.py; the templates of the CRDs come from crds/; Chart.yaml's versions come from pyproject.toml.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

from chart_values.crds import template
from chart_values.settings import settings
from chart_values.table import table
from chart_values.tree import tree
from chart_values.yamltext import values_yaml

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts" / "partita"
TABLE = re.compile(r"(?<=<!-- values -->\n).*(?=<!-- end of values -->)", re.DOTALL)
VERSION = re.compile(r"^(version|appVersion): .*$", re.MULTILINE)


def made() -> dict[Path, str]:
    """Return the text of every file."""
    root = tree()
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"settings": settings().definition()},
        **root.json_schema(),
    }
    files = {
        CHART / "values.yaml": values_yaml(root),
        CHART / "values.schema.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n",
        CHART / "README.md": _replaced(CHART / "README.md", TABLE, "\n" + table(root) + "\n"),
        CHART / "Chart.yaml": _versions(CHART / "Chart.yaml"),
    }
    for source in sorted((ROOT / "crds").glob("*.yaml")):
        files[CHART / "templates" / "crds" / source.name] = template(source)
    return files


def _replaced(path: Path, pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda _: text, path.read_text("utf-8"))


def _versions(path: Path) -> str:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return VERSION.sub(lambda found: f'{found[1]}: "{version}"', path.read_text("utf-8"))


def main(arguments: list[str]) -> int:
    """Write or check the files; returns the exit code."""
    stale = [path for path, text in made().items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: out of date; try: scripts/chart_files.py")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made()[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
