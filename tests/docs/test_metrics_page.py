"""docs/metrics.md lists what ``/metrics`` says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "metrics_page.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0
