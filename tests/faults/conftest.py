"""Worker processes that a test may kill, freeze and stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).parents[2]
QUICK = {
    "PARTITA_WORKER_LEASE_MS": "1500",
    "PARTITA_WORKER_HEARTBEAT_MS": "300",
    "PARTITA_WORKER_STOP_GRACE_MS": "0",
    "PARTITA_ENGINE_SWEEP_INTERVAL_MS": "200",
}


@dataclass
class WorkerProcess:
    """One started worker."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        """Its exit code, once it has ended."""

        async def check() -> tuple[int] | None:
            code = self.process.poll()
            return None if code is None else (code,)

        answer = await until(check, what="the worker has ended")
        assert answer is not None
        return answer[0]

    async def says(self, *texts: str) -> None:
        """Wait until its log contains one of these."""

        async def check() -> bool:
            log = self.log.read_text()
            return any(text in log for text in texts)

        await until(check, what=f"the worker says {texts}")


StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[StartWorker]:
    """Start a worker on a database; all are killed at the end, frozen ones too."""
    started: list[WorkerProcess] = []

    def start(
        url: str, *, module: str = "tests.faults.worker_process", arguments: Sequence[str] = (), **environment: str
    ) -> WorkerProcess:
        log = tmp_path / f"worker-{len(started)}.log"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PARTITA_")}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                env={**inherited, "PARTITA_DATABASE_URL": url, **QUICK, **environment},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        started.append(WorkerProcess(process, log))
        return started[-1]

    yield start
    for worker in started:
        worker.process.kill()
        worker.process.wait()
