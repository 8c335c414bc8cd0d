"""The control plane built from source: a real API that can be taken away, and that leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from e2e.cluster import ClusterError, RestartableCluster, find, flags
from e2e.cluster.controlplane import ControlPlane
from e2e.cluster.fixtures import cluster, restartable_cluster
from e2e.cluster.owned import ROOT
from e2e.cluster.pki import Authority
from e2e.cluster.state import Record
from e2e.cluster.waiting import wait_until

__all__ = ["cluster", "restartable_cluster"]

OWNER = """\
import sys
from pathlib import Path
from e2e.cluster import choose_restartable, running
with running(choose_restartable(Path(sys.argv[1]), "owned")):
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_objects_survive_a_restart_of_the_api_server(restartable_cluster: RestartableCluster) -> None:
    restartable_cluster.run_kubectl("create", "configmap", "kept", "--from-literal=key=value")
    restartable_cluster.stop_apiserver()
    assert not restartable_cluster.ready()
    with pytest.raises(ClusterError):
        restartable_cluster.run_kubectl("get", "configmap", "kept")
    restartable_cluster.start_apiserver()
    assert restartable_cluster.kubectl_json("get", "configmap", "kept")["data"] == {"key": "value"}
    restartable_cluster.run_kubectl("delete", "configmap", "kept")


def test_rights_are_enforced(restartable_cluster: RestartableCluster) -> None:
    allowed = restartable_cluster.run_kubectl("auth", "can-i", "create", "pods")
    assert allowed.strip() == "yes"
    with pytest.raises(ClusterError, match="forbidden"):
        restartable_cluster.run_kubectl("get", "pods", "--as=system:serviceaccount:default:default")


def test_client_and_server_are_of_one_version(restartable_cluster: RestartableCluster) -> None:
    versions = restartable_cluster.kubectl_json("version")
    assert versions["clientVersion"]["gitVersion"] == versions["serverVersion"]["gitVersion"]


def test_whoever_finds_the_folder_controls_the_cluster(restartable_cluster: RestartableCluster) -> None:
    found = find(restartable_cluster.home)
    assert isinstance(found, ControlPlane)
    assert found.ready()
    assert all(program.alive() for program in found.programs().values())
    found.start()
    assert find(restartable_cluster.home) is not None


@pytest.mark.usefixtures("restartable_cluster")
def test_a_killed_owner_takes_its_cluster_along(tmp_path: Path) -> None:
    home = tmp_path / "owned"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        programs = ControlPlane(home, "owned").programs()
        assert sorted(programs) == ["etcd", "kube-apiserver", "kube-controller-manager"]
        owner.kill()
    wait_until(lambda: not any(program.alive() for program in programs.values()), "the programs ended", seconds=30)
    wait_until(lambda: find(home) is None, "the record is removed", seconds=30)


@pytest.mark.usefixtures("restartable_cluster")
def test_a_program_that_dies_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(authority: Authority, _ports: dict[str, int]) -> flags.Options:
        return {"cert-dir": str(authority.folder), "no-such-option": "1"}

    monkeypatch.setattr(flags, "apiserver", broken)
    broken_plane = ControlPlane(tmp_path / "broken", "broken")
    with pytest.raises(ClusterError, match=r"kube-apiserver has ended[\s\S]*no-such-option"):
        broken_plane.start()
    assert find(tmp_path / "broken") is None
    assert not any(program.alive() for program in broken_plane.programs().values())


def test_a_stale_record_harms_no_other_program(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as bystander:
        Record("go", "stale", ports={"kube-apiserver": 1}, pids={"etcd": bystander.pid}).write(tmp_path)
        plane = ControlPlane(tmp_path, "stale")
        assert not plane.ready()
        plane.stop()
        assert bystander.poll() is None
        bystander.kill()
    assert find(tmp_path) is None
