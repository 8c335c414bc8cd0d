"""A process is killed while it hands tasks to its own worker in the transactions that start their runs."""

from __future__ import annotations

from uuid import UUID

from partita.settings import Settings
from tests.faults.conftest import StartWorker, WorkerProcess
from tests.waiting import until
from tests.worker.hosted import hosted

RUNS = 150
STEPS = ("one", "two", "three")
NODES = [{"name": name, "task": {"type": "step"}, "dependsOn": list(STEPS[:at][-1:])} for at, name in enumerate(STEPS)]
COMPLETED = """
SELECT run.id, run.idempotency_key, run.status, count(*) AS ends, count(DISTINCT history.node) AS nodes
FROM partita.workflow_runs AS run JOIN partita.run_history AS history ON history.run_id = run.id
WHERE history.event = 'TaskCompleted' GROUP BY run.id, run.idempotency_key, run.status
"""
LEFT = "SELECT (SELECT count(*) FROM partita.ready_tasks) + (SELECT count(*) FROM partita.task_leases)"


async def answered(process: WorkerProcess, count: int) -> None:
    """Wait until so many starts have been answered."""

    async def check() -> bool:
        return len(process.log.read_text().split()) >= count

    await until(check, what=f"{count} starts are answered")


async def test_each_run_that_was_started_ends_once(settings: Settings, start_worker: StartWorker) -> None:
    async with hosted(settings) as host:
        await host.deploy(*NODES)
        told: set[UUID] = set()
        for killed_after in (7, 40, 90):
            process = start_worker(settings.database.url, module="tests.faults.starting_process", arguments=[str(RUNS)])
            await answered(process, killed_after)
            process.process.kill()
            process.process.wait()
            told |= {UUID(line) for line in process.log.read_text().splitlines() if len(line) == 36}
        last = start_worker(settings.database.url, module="tests.faults.starting_process", arguments=[str(RUNS)])
        assert await last.exit_code() == 0
        start_worker(settings.database.url)  # for what the killed ones held

        async def ended() -> bool:
            (row,) = await host.fetch("SELECT count(*) FROM partita.open_runs")
            return bool(row[0] == 0)

        await until(ended, within=60, what="all runs have ended")
        rows = await host.fetch(COMPLETED)
        assert {row["idempotency_key"] for row in rows} == {str(number) for number in range(RUNS)}
        assert len(rows) == RUNS
        assert {(row["status"], row["ends"], row["nodes"]) for row in rows} == {("Succeeded", 3, 3)}
        assert told <= {row["id"] for row in rows}
        assert (await host.fetch(LEFT))[0][0] == 0
