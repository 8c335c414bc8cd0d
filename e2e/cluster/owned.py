"""A cluster that lives no longer than the block, or the process, that wanted it.

A keeper, a process of its own, holds the reading end of a pipe whose writing end is ours. When we end, however that
comes about, the system closes the pipe and the keeper stops the cluster. This asks nothing of the kernel but pipes
(Linux's parent-death signal is sent when the *thread* that started a child ends, which is not what is wanted here).
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from e2e.cluster import keepers
from e2e.cluster.choice import find
from e2e.cluster.contract import Cluster

ROOT = Path(__file__).resolve().parents[2]
KEEPER_SECONDS = 60

C = TypeVar("C", bound=Cluster)


@contextlib.contextmanager
def running(cluster: C) -> Iterator[C]:
    """Start a cluster, yield it, and stop it at the end of the block or of this process, whichever comes first."""
    with _kept(cluster.home):
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def keep(home: Path) -> None:
    """Wait until standard input ends, then stop the cluster in `home` if it is still there: what a keeper does."""
    while sys.stdin.buffer.read(4096):
        pass
    cluster = find(home)
    if cluster is not None:
        cluster.stop()


@contextlib.contextmanager
def _kept(home: Path) -> Iterator[None]:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "e2e.cluster", "keep", "--state-dir", str(home.resolve())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    keepers.note(home.resolve(), keeper.pid)
    try:
        yield
    finally:
        keepers.forget(home.resolve())
        keeper.stdin.close()
        keeper.wait(KEEPER_SECONDS)
