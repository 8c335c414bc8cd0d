"""A durable server for the benchmarks' tests: the shared test server runs without fsync, which benchmarks refuse."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from partita.store.embedded import Server


@pytest.fixture(scope="module")
def durable_server() -> Iterator[Server]:
    """An embedded server that writes durably, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="partita-bench-test-"))
    folder.chmod(0o755)
    server = Server(folder / "data", durable=True)
    server.start()
    try:
        yield server
    finally:
        server.remove()
        folder.rmdir()
