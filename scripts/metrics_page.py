#!/usr/bin/env python3
"""Fills the table of docs/metrics.md from the code.

usage: metrics_page.py [--check]         writes the table; --check only says whether it is current (exit code 1 if not)
"""

import re
import sys
from pathlib import Path

from partita.kube.metric_families import FAMILIES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
BLOCK = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with its table filled in."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{table()}\n\n{block[2]}", text)


def table() -> str:
    """Return the table of all metrics."""
    rows = [("metric", "type", "labels", "said by", "meaning"), ("---",) * 5]
    for family in FAMILIES:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        rows.append((f"`{family.name}`", family.kind, labels, "all" if family.everyone else "leader", family.help))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """Write or check the page."""
    old = PAGE.read_text("utf-8")
    new = page(old)
    if "--check" in sys.argv[1:]:
        return int(old != new)
    PAGE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
