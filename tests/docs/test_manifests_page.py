"""docs/manifests.md says what the code accepts, and its examples are good."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "manifests_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
