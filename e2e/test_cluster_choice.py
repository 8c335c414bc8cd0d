"""Which cluster is taken on which machine; programs are stood in for by scripts that note how they were called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.cluster import ClusterError, ProviderUnavailable, choose, choose_restartable, find, running


class Machine:
    """A PATH of one's own with stand-ins, an empty cache, and the calls that were made."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.calls_file = folder / "calls"
        self.home = folder / "cluster"
        self.programs.mkdir()

    def install(self, name: str, script: str = "exit 0") -> None:
        """Put a program into the PATH that notes its arguments and then runs `script`."""
        path = self.programs / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.calls_file}"\n{script}\n', encoding="utf-8")
        path.chmod(0o755)

    def calls(self, beginning: str) -> list[str]:
        """The noted calls that begin with these words."""
        lines = self.calls_file.read_text(encoding="utf-8").splitlines() if self.calls_file.exists() else []
        return [line for line in lines if line.startswith(beginning)]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with nothing installed."""
    made = Machine(tmp_path)
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PARTITA_E2E_KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "persons-own"))
    return made


def with_docker(machine: Machine) -> None:
    """Install a Docker engine that answers, kind, and a kubectl that finds every API server ready."""
    machine.install("docker")
    machine.install("kind")
    machine.install("kubectl", "echo ok")


def test_without_anything_every_missing_thing_is_named(machine: Machine) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        choose(machine.home)
    message = str(caught.value)
    assert "explicit: PARTITA_E2E_KUBECONFIG is not set" in message
    assert "kind: the kind program is not installed" in message
    assert "go: Go 1.25 or newer is not installed" in message


def test_a_named_cluster_comes_first_and_is_never_stopped(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_docker(machine)
    named = tmp_path / "named"
    named.touch()
    monkeypatch.setenv("PARTITA_E2E_KUBECONFIG", str(named))
    with running(choose(machine.home)) as cluster:
        assert cluster.provider == "explicit"
        assert cluster.environment() == {"KUBECONFIG": str(named)}
    assert machine.calls("kubectl") == [f"kubectl --kubeconfig={named} get --raw /readyz"]
    assert machine.calls("kind") == []


def test_a_named_kubeconfig_that_is_missing_is_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITA_E2E_KUBECONFIG", "/nowhere/kubeconfig")
    with pytest.raises(ClusterError, match="/nowhere/kubeconfig: no such file"):
        choose(machine.home).start()


def test_kind_where_docker_answers_with_a_kubeconfig_of_its_own(machine: Machine) -> None:
    with_docker(machine)
    with running(choose(machine.home, "mine")) as cluster:
        assert cluster.provider == "kind"
        found = find(machine.home)
        assert found is not None
        assert (found.provider, found.name) == ("kind", "mine")
    own = f"--name partita-mine --kubeconfig {machine.home}/kubeconfig"
    assert machine.calls("kind create") == [f"kind create cluster --wait 180s {own}"]
    assert machine.calls("kind")[-1] == f"kind delete cluster {own}"
    assert find(machine.home) is None
    assert not Path(os.environ["KUBECONFIG"]).exists()


def test_a_kind_that_fails_says_why(machine: Machine) -> None:
    with_docker(machine)
    machine.install("kind", 'test "$1" = delete || { echo "no space left" >&2; exit 1; }')
    with pytest.raises(ClusterError, match="no space left"):
        choose(machine.home).start()


def test_a_docker_engine_that_does_not_answer_is_passed_over(machine: Machine) -> None:
    with_docker(machine)
    machine.install("docker", "exit 1")
    machine.install("openssl")
    machine.install("go", "echo go1.25.3")
    assert choose(machine.home).provider == "go"


def test_an_old_go_is_not_enough(machine: Machine) -> None:
    machine.install("openssl")
    machine.install("go", "echo go1.24.9")
    with pytest.raises(ProviderUnavailable, match=r"go: Go 1\.24 is installed, but 1\.25 or newer is needed"):
        choose(machine.home)


def test_restarts_need_the_control_plane_of_our_own(machine: Machine) -> None:
    with_docker(machine)
    with pytest.raises(ProviderUnavailable, match="whose API server can be restarted: Go"):
        choose_restartable(machine.home)
    machine.install("openssl")
    machine.install("go", "echo go1.26")
    assert choose_restartable(machine.home).provider == "go"
