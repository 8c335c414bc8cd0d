"""Fixtures of the tests of the command line."""

from __future__ import annotations

import pytest

from tests.cli.commands import Cli


@pytest.fixture
def partita(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line without a database in its environment, and without a kubeconfig."""
    monkeypatch.delenv("PARTITA_DATABASE_URL", raising=False)
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    return Cli(monkeypatch, capsys)


@pytest.fixture
def on_database(partita: Cli, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line on a fresh database."""
    monkeypatch.setenv("PARTITA_DATABASE_URL", database_url)
    return partita
