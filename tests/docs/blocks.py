"""The fenced blocks of the documents, and how each is checked.

A block of shell commands runs as it stands, in the folder of the checkout. A comment right above it says otherwise:

    <!-- run: cluster -->        it needs a cluster and a database; e2e/test_documents.py runs these, in their order
    <!-- not run: reason -->     nobody runs it, and the reason says why
    <!-- test: name.py -->       a test of its own does something with it
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "bench" / "README.md",
)
SHELL = ("sh", "bash")
SHOWN = ("mermaid", "text", "console", "sql", "")
"""Languages of blocks that are looked at, not run."""
_FENCE = re.compile(
    r"(?:<!-- (?P<how>run|not run|test): (?P<why>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    document: Path
    line: int
    language: str
    text: str
    how: str
    """``run``, ``not run``, ``test``, or empty."""
    why: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(*documents: Path) -> list[Block]:
    """All blocks of these documents, in their order; of every document without any."""
    return [block for document in documents or DOCUMENTS if document.exists() for block in _blocks(document)]


def _blocks(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    return [
        Block(
            document,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["text"],
            found["how"] or "",
            found["why"] or "",
        )
        for found in _FENCE.finditer(text)
    ]
