"""Building the control plane: once for all who ask, whole or not at all. Go is stood in for by a script."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from e2e.cluster import BuildError, binaries
from e2e.cluster.progress import quietly

BUILD = """\
case "$1" in
env) echo go1.26.0 ;;
build)
  echo build >>"$CALLS"
  while [ "$1" != -o ]; do shift; done
  for package in server kube-apiserver kube-controller-manager kubectl; do echo program >"$2$package"; done ;;
esac
"""
FAILING = """\
case "$1" in
env) echo go1.26.0 ;;
build) echo "package: cannot find module" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a go whose builds are noted in this file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    install_go(tmp_path, monkeypatch, BUILD)
    return tmp_path / "calls"


def install_go(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a go that runs this shell script at the front of the PATH."""
    go = folder / "bin" / "go"
    go.parent.mkdir(exist_ok=True)
    go.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent), prepend=":")


@pytest.mark.usefixtures("calls")
def test_every_program_is_in_the_folder() -> None:
    built = binaries.ensure(quietly)
    assert {path.name for path in built.folder.iterdir()} == set(binaries.PACKAGES)
    assert built.folder.name.startswith(f"{binaries.kubernetes_version()}-")
    assert binaries.cached() == built


def test_callers_at_the_same_time_build_once(calls: Path) -> None:
    threads = [threading.Thread(target=binaries.ensure, args=(quietly,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert calls.read_text("utf-8") == "build\n"


@pytest.mark.usefixtures("calls")
def test_a_failed_build_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_go(tmp_path, monkeypatch, FAILING)
    with pytest.raises(BuildError, match="cannot find module"):
        binaries.ensure(quietly)
    assert binaries.cached() is None
    assert [path.name for path in (tmp_path / "cache" / "partita" / "kubernetes").iterdir()] == [".lock"]


@pytest.mark.usefixtures("calls")
def test_what_an_interrupted_build_left_is_removed(tmp_path: Path) -> None:
    leftover = tmp_path / "cache" / "partita" / "kubernetes" / ".building-old"
    leftover.mkdir(parents=True)
    binaries.ensure(quietly)
    assert not leftover.exists()
