"""What the demo takes from a shell in which a kept demo was exported, without playing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.cluster.errors import ClusterError
from e2e.demo import stage, story
from e2e.demo.database import EmbeddedDatabase, NamedDatabase, demo_database


def test_a_url_into_the_demos_own_home_names_no_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARTITA_DATABASE_URL", EmbeddedDatabase(tmp_path).environment()["PARTITA_DATABASE_URL"])
    assert isinstance(demo_database(tmp_path), EmbeddedDatabase)
    assert isinstance(demo_database(tmp_path / "another"), NamedDatabase)


def test_a_database_that_is_away_is_said_before_a_kept_demo_is_taken_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARTITA_DEMO_HOME", str(tmp_path))
    monkeypatch.setenv("PARTITA_DATABASE_URL", "postgresql://127.0.0.1:1/x")
    (tmp_path / "kept").touch()
    with pytest.raises(ClusterError, match="PARTITA_DATABASE_URL"), stage.raised(keep=False):
        pass
    assert (tmp_path / "kept").exists()


def test_the_command_that_stops_the_demo_names_its_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITA_DEMO_HOME", "/srv/my demo")
    assert story.stop_command() == "PARTITA_DEMO_HOME='/srv/my demo' .venv/bin/python -m e2e.demo stop"
    monkeypatch.delenv("PARTITA_DEMO_HOME")
    assert story.stop_command() == ".venv/bin/python -m e2e.demo stop"
