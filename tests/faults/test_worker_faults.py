"""What happens to tasks when their worker is killed, frozen or stopped."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from partita.domain.payload import Payload
from partita.settings import Settings
from tests.engine.hand_claims import claim, done
from tests.faults.conftest import StartWorker, WorkerProcess
from tests.waiting import until
from tests.worker.hosted import Host, hosted

HOLD = {"name": "held", "task": {"type": "hold"}, "input": {"folder": "${input.folder}"}}


async def begun(folder: Path, worker: WorkerProcess, attempt: int = 1) -> None:
    """Wait until this worker executes this attempt."""
    mark = folder / f"held.{attempt}.{worker.pid}"

    async def check() -> bool:
        return mark.exists()

    await until(check, what=f"worker {worker.pid} begins attempt {attempt}")


async def start_held(host: Host, folder: Path) -> UUID:
    await host.deploy(HOLD, output={"pid": "${nodes.held.output}"})
    return await host.start({"folder": str(folder)})


async def finished_by(host: Host, run_id: UUID) -> int:
    """The process whose result was recorded."""
    ended = await host.ended(run_id)
    assert ended["status"] == "Succeeded"
    return int(orjson.loads(ended["output_json"])["pid"])


async def test_another_worker_finishes_the_task_of_a_killed_one(
    settings: Settings, start_worker: StartWorker, tmp_path: Path
) -> None:
    async with hosted(settings, duties=False) as host:
        first = start_worker(settings.database.url)
        run_id = await start_held(host, tmp_path)
        await begun(tmp_path, first)
        first.send(signal.SIGKILL)
        second = start_worker(settings.database.url)
        await begun(tmp_path, second, attempt=2)
        (tmp_path / "go").touch()
        assert await finished_by(host, run_id) == second.pid
        ends = await host.events(run_id, "LeaseLost", "TaskCompleted")
        assert ends == [("LeaseLost", "held", 1), ("TaskCompleted", "held", 2)]
        assert await host.left_overs(run_id) == 0


async def test_a_frozen_worker_that_wakes_up_late_changes_nothing(
    settings: Settings, start_worker: StartWorker, tmp_path: Path
) -> None:
    async with hosted(settings, duties=False) as host:
        frozen = start_worker(settings.database.url)
        run_id = await start_held(host, tmp_path)
        await begun(tmp_path, frozen)
        frozen.send(signal.SIGSTOP)
        second = start_worker(settings.database.url)
        await begun(tmp_path, second, attempt=2)
        (tmp_path / "go").touch()
        assert await finished_by(host, run_id) == second.pid
        frozen.send(signal.SIGCONT)
        await frozen.says("ended here too late", "no longer leased to this worker")
        assert await finished_by(host, run_id) == second.pid
        assert await host.events(run_id, "TaskCompleted") == [("TaskCompleted", "held", 2)]
        second.send(signal.SIGKILL)
        assert await finished_by(host, await host.start({"folder": str(tmp_path)})) == frozen.pid, "and goes on working"


async def test_a_terminated_worker_hands_its_task_back(
    settings: Settings, start_worker: StartWorker, tmp_path: Path
) -> None:
    async with hosted(settings, duties=False) as host:
        first = start_worker(settings.database.url)
        run_id = await start_held(host, tmp_path)
        await begun(tmp_path, first)
        first.send(signal.SIGTERM)
        assert await first.exit_code() == 0
        second = start_worker(settings.database.url)
        await begun(tmp_path, second, attempt=1)
        (tmp_path / "go").touch()
        assert await finished_by(host, run_id) == second.pid
        assert await host.events(run_id, "TaskCompleted") == [("TaskCompleted", "held", 1)], "no attempt was spent"


async def test_a_second_signal_ends_a_worker_at_once(
    settings: Settings, start_worker: StartWorker, tmp_path: Path
) -> None:
    async with hosted(settings, duties=False) as host:
        worker = start_worker(settings.database.url, PARTITA_WORKER_STOP_GRACE_MS="3600000")
        await start_held(host, tmp_path)
        await begun(tmp_path, worker)
        worker.send(signal.SIGTERM)
        await worker.says("stops")
        assert worker.process.poll() is None, "it lets its task finish"
        worker.send(signal.SIGTERM)
        assert await worker.exit_code() != 0


async def test_a_worker_that_never_reached_its_database_can_be_stopped(start_worker: StartWorker) -> None:
    worker = start_worker("postgresql://nobody@127.0.0.1:1/nowhere", PARTITA_DATABASE_PATIENCE_MS="100")
    await worker.says("service heartbeat: ")
    worker.send(signal.SIGTERM)
    assert await worker.exit_code() == 0


async def test_of_two_workers_that_report_one_attempt_one_wins(settings: Settings) -> None:
    async with hosted(settings, duties=False) as one, hosted(settings, duties=False) as two:
        await one.deploy({"name": "only", "task": {"type": "step"}}, output={"by": "${nodes.only.output}"})
        run_id = await one.start()
        task = await claim(one, "holder")
        other: dict[str, Any] = {"output": Payload.of("intruder")}
        replies = await asyncio.gather(
            one.engine.report(done(task, "holder", output=Payload.of("holder"))),
            two.engine.report(done(task, "intruder", **other)),
        )
        assert [reply.outcome for reply in replies] == ["applied", "stale"]
        again = await two.engine.report(done(task, "holder", output=Payload.of("holder")))
        assert again.outcome == "already_applied", "the winner may ask again, of any coordinator"
        ended = await one.ended(run_id)
        assert orjson.loads(ended["output_json"]) == {"by": "holder"}
