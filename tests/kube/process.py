"""An operator as a process of its own, for tests that kill it.

    python -m tests.kube.process KUBECONFIG IDENTITY [--die-before-status]

Settings come from the environment. With ``--die-before-status`` the process kills itself, as ``kill -9`` would, right
before the first status of a run is written: its transaction is committed then, and nobody was told.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

from partita.kube.operator import run_operator
from partita.kube.options import OperatorOptions
from partita.settings import Settings

ROOT = Path(__file__).parents[2]
DIE = "--die-before-status"


@contextmanager
def operator_process(
    kubeconfig: Path, settings: Settings, identity: str, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start an operator; it is killed at the end of the block if it still runs."""
    with _process([sys.executable, "-m", "tests.kube.process", str(kubeconfig), identity, *arguments], settings) as it:
        yield it


@contextmanager
def partita_process(
    settings: Settings, *words: str, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``partita`` as people do, with these settings in its environment; it is killed at the end of the block."""
    with _process([str(Path(sys.executable).with_name("partita")), *words], settings, environment) as process:
        yield process


@contextmanager
def _process(
    command: list[str], settings: Settings, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment(settings), **more})
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)


def environment(settings: Settings) -> dict[str, str]:
    """The variables that carry these settings to another process."""
    operator = {
        f"PARTITA_OPERATOR_{item.name.upper()}": _text(getattr(settings.operator, item.name))
        for item in fields(settings.operator)
    }
    return {**operator, "PARTITA_DATABASE_URL": settings.database.url}


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


async def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the operator until SIGTERM."""
    kubeconfig, identity, *rest = sys.argv[1:]
    options = OperatorOptions(
        kubeconfig=Path(kubeconfig), identity=identity, before_write=_die if DIE in rest else None
    )
    asyncio.run(run_operator(Settings.load(os.environ), options))


if __name__ == "__main__":
    main()
