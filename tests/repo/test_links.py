"""Every relative link of the documents leads to a file, and every anchor to a heading."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.repo.tree import ROOT, files_of, short, text

LINK = re.compile(r"!?\[[^\]]*\]\((?!https?:|mailto:)<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
DOCUMENTS = files_of(".md")


def anchors(document: Path) -> set[str]:
    """The anchors that a Markdown renderer makes of a document's headings."""
    headings = re.findall(r"^#+\s+(.*?)\s*#*$", CODE.sub("", text(document)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=short)
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for link in LINK.findall(CODE.sub("", text(document))):
        place, _, anchor = unquote(link).partition("#")
        base = ROOT if place.startswith("/") else document.parent
        target = base / place.lstrip("/") if place else document
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []
