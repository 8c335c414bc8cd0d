"""README.md leads to every page."""

from __future__ import annotations

import re

from tests.docs.blocks import ROOT

LINK = re.compile(r"\]\(([^)#\s]+)")


def test_the_readme_names_every_page() -> None:
    index = (ROOT / "README.md").read_text("utf-8").split("\n## More\n")[1]
    named = set(LINK.findall(index))
    assert {str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")} - named == set()
