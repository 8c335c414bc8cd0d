"""Starting, losing and ending the node that is built from source: nothing of it may stay behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import ClusterError, find
from e2e.cluster.node import Node, cgroups, leftovers, requirements
from e2e.cluster.owned import ROOT, running
from e2e.cluster.progress import to_stderr
from e2e.cluster.waiting import wait_until
from e2e.node_objects import apply, job, pod, run_to_end, wait_for

END_SECONDS = 60

OWNER = """\
import sys
from pathlib import Path
from e2e.cluster import running
from e2e.cluster.node import Node
with running(Node(Path(sys.argv[1]), "owned")):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder for a node, which is stopped afterwards in any case."""
    if (problem := Node.problem()) is not None:
        pytest.skip(problem)
    yield tmp_path / "node"
    Node(tmp_path / "node", "left").stop()


def processes_of(home: Path) -> list[int]:
    """Return the processes that name the folder, or that lie in the node's control group, but this one."""
    named: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
                groups = (entry / "cgroup").read_bytes()
            except OSError:
                continue
            if str(home).encode() in command or leftovers.identity(home).encode() in groups:
                named.append(int(entry.name))
    return named


def remains(home: Path) -> dict[str, object]:
    """Return whatever there is still of a node, by kind; empty when there is nothing."""
    mounts = [line for line in Path("/proc/mounts").read_text("utf-8").splitlines() if str(home) in line]
    groups = [str(path) for path in cgroups.ROOT.glob(f"**/{leftovers.identity(home)}")]
    found = {
        "processes": processes_of(home),
        "mounts": mounts,
        "control groups": groups,
        "note": (leftovers.FOLDER / f"{leftovers.identity(home)}.json").exists(),
        "record": find(home) is not None,
    }
    return {kind: what for kind, what in found.items() if what}


def settings() -> dict[str, str]:
    """Return what a kubelet would like to change of the machine."""
    names = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
    return {name: Path(f"/proc/sys/{name}").read_text("ascii") for name in names}


def test_a_stopped_node_leaves_nothing_and_the_machine_as_it_was(home: Path) -> None:
    before, links = settings(), set(Path("/sys/class/net").iterdir())
    with running(Node(home, "brief", to_stderr)) as node:
        node.run_kubectl("create", "namespace", "work")
        apply(node, "work", pod("stays", "exec sleep 600"))
        wait_for(node, "work", "pod/stays", "condition=Ready")
        assert processes_of(home)
        assert settings() == before
        assert set(Path("/sys/class/net").iterdir()) == links
    assert remains(home) == {}
    assert settings() == before


def test_a_node_ends_with_its_owner(home: Path) -> None:
    with owner_of(home) as owner:
        owner.kill()
    wait_until(lambda: remains(home) == {}, "the keeper has removed the node", seconds=END_SECONDS)


def test_what_a_killed_owner_and_keeper_left_is_removed_by_the_next_start(home: Path, tmp_path: Path) -> None:
    with owner_of(home) as owner:
        for pid in [pid for pid in processes_of(home) if b"\0keep\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]:
            os.kill(pid, signal.SIGKILL)
        owner.kill()
    assert remains(home)
    with running(Node(tmp_path / "next", "next", to_stderr)) as node:
        assert remains(home) == {}
        assert node.ready()


def test_a_failed_start_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("e2e.cluster.node.flags.kubelet", lambda *_: {"no-such-option": str(home)})
    monkeypatch.setattr("e2e.cluster.node.node.NODE_SECONDS", 5.0)
    with pytest.raises(ClusterError, match=r"node/node|kubelet"):
        Node(home, "broken").start()
    assert remains(home) == {}


def test_two_nodes_run_side_by_side(home: Path, tmp_path: Path) -> None:
    with running(Node(home, "left")) as left, running(Node(tmp_path / "other", "right")) as right:
        for node in (left, right):
            node.run_kubectl("create", "namespace", node.name)
            apply(node, node.name, job("once", f"echo {node.name}"))
        for node in (left, right):
            wait_for(node, node.name, "job/once", "condition=Complete")
            assert node.run_kubectl("logs", "-n", node.name, "job/once") == f"{node.name}\n"
    assert remains(home) == {}


def test_pods_go_on_while_the_api_server_is_away(home: Path) -> None:
    with running(Node(home, "restarted")) as node:
        node.run_kubectl("create", "namespace", "work")
        apply(node, "work", pod("stays", "exec sleep 600"))
        wait_for(node, "work", "pod/stays", "condition=Ready")
        node.stop_apiserver()
        assert not node.ready()
        node.start_apiserver()
        assert node.run_kubectl("exec", "-n", "work", "stays", "--", "echo", "here") == "here\n"
        assert run_to_end(node, "work", pod("after", "echo after")) == "after\n"


def test_a_machine_that_lacks_something_says_what_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "SEARCH", "/nowhere")
    monkeypatch.setattr(sys, "platform", "linux")
    problem = requirements.problem()
    assert problem is not None
    assert "containerd" in problem
    assert "apt-get install" in problem


def test_someone_without_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "missing_packages", list)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert requirements.problem() == "a node must be started by root; try: sudo, or kind with a Docker engine"


def owner_of(home: Path) -> subprocess.Popen[str]:
    """Start a process that owns a node, and wait until the node is ready."""
    command = [sys.executable, "-c", OWNER, str(home)]
    owner = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    return owner
