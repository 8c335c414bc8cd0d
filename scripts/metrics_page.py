#!/usr/bin/env python3
"""Fills the tables of docs/metrics.md from the code.

usage: metrics_page.py [--check]         writes the tables; --check only says whether they are current (exit code 1: no)
"""

import re
import sys
from pathlib import Path

from partita.kube import metric_families as operators
from partita.probes.families import BUILD, OF_EVERY_PROCESS
from partita.probes.metrics import Family
from partita.worker import metric_families as workers

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
BLOCK = re.compile(r"(<!-- (operator|worker) -->\n).*?(<!-- end -->)", re.DOTALL)
FAMILIES: dict[str, tuple[Family, ...]] = {
    "operator": (BUILD, *operators.FAMILIES, *OF_EVERY_PROCESS),
    "worker": (BUILD, *workers.FAMILIES, *OF_EVERY_PROCESS),
}


def page(text: str) -> str:
    """Return the page with its tables filled in."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{table(block[2])}\n\n{block[3]}", text)


def table(process: str) -> str:
    """Return the table of all metrics of a process; of an operator's with who says them."""
    leads = process == "operator"
    rows = [("metric", "type", "labels", *(("said by",) if leads else ()), "meaning")]
    rows.append(("---",) * len(rows[0]))
    for family in FAMILIES[process]:
        said = ("all" if family.everyone else "leader",) if leads else ()
        labels = ", ".join(f"`{label}`" for label in family.labels)
        rows.append((f"`{family.name}`", family.kind, labels, *said, family.help))
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
