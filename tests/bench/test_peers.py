"""Peers are measured by what PostgreSQL says has finished; whoever has not done the work gives no figure.

Only the peer that needs no other package runs here for real; the others are run by the benchmark alone.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bench.peers import install, place, report, script, turns
from bench.peers.catalogue import FOLDER, PEERS, Peer
from bench.peers.child import Child, PeerError, child
from bench.peers.report import Result
from bench.peers.turns import Bench, Turn, Work, check, ready
from bench.postgres import Base
from partita.settings import Settings
from partita.store.embedded import Server
from tests.bench.test_scripts import FIELDS, bench

WORK = Work(runs=12, lone=3, workers=2)
HAND_WRITTEN = next(peer for peer in PEERS if peer.name == "hand-written")
PLAN = script.parse(["--quick"])


@pytest.fixture
async def own(durable_server: Server) -> AsyncIterator[str]:
    """URL of an empty database."""
    async with place.database(durable_server.url()) as url:
        yield url


async def set_up(url: str) -> Bench:
    command, variables = install.command(HAND_WRITTEN)
    return await ready(command, {**place.variables(url), **variables}, url)


async def test_hand_written_runs_as_often_as_the_database_says(own: str) -> None:
    peer = await set_up(own)
    turn = await peer.turn(WORK)
    connection = await asyncpg.connect(own)
    succeeded = await connection.fetchval("SELECT count(*) FROM runs WHERE status = 'succeeded' AND ended >= created")
    done = await connection.fetchval("SELECT count(*) FROM steps WHERE state = 'done' AND ended >= started")
    rows = await connection.fetchval("SELECT count(*) FROM runs")
    await connection.close()
    runs = WORK.runs // 4 + WORK.runs + WORK.lone + 10
    assert (succeeded, rows, done, peer.finished) == (runs, runs, 3 * runs, runs)
    assert len(turn.lone) == WORK.lone
    assert min(*turn.lone, turn.rate, turn.wal) > 0
    assert turn.cpu is not None
    assert turn.commits > 7 / 3  # seven transactions a run of three steps; looks for work come on top


@pytest.mark.parametrize(
    ("question", "answer", "problem"),
    [
        ("open", "SELECT EXISTS (SELECT FROM runs)", "runs are open"),
        ("finished", "SELECT count(*) - 1 FROM runs", "runs are recorded as finished; expected 3"),
        ("finished", "SELECT count(*) + 1 FROM runs", "runs are recorded as finished; expected 3"),
    ],
)
async def test_work_that_is_not_finished_gives_no_figure(
    own: str, monkeypatch: pytest.MonkeyPatch, question: str, answer: str, problem: str
) -> None:
    monkeypatch.setattr(turns, "_PATIENCE", 1.0)
    peer = await set_up(own)
    peer.about[question] = answer
    with pytest.raises(PeerError, match=problem):
        await peer.turn(WORK)


async def test_steps_that_no_process_executed_give_no_figure(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database says that all is done; the processes counted one last step less, as if it was only recorded."""

    async def counted(workers: Sequence[Child]) -> list[int]:
        first, second, third = await turns_executed(workers)
        return [first, second, max(0, third - 1)]

    turns_executed = turns.executed
    monkeypatch.setattr(turns, "executed", counted)
    peer = await set_up(own)
    with pytest.raises(PeerError, match="steps were executed 3, 3, 2 times; expected 3 each"):
        await peer.turn(WORK)


@pytest.mark.parametrize("steps", [[7, 7, 6], [8, 7, 7], [0, 0, 0]])
def test_steps_that_were_left_out_or_done_twice_are_a_fault(steps: list[int]) -> None:
    with pytest.raises(PeerError, match="expected 7 each"):
        check(7, steps)


def test_steps_that_were_done_once_are_none() -> None:
    check(7, [7, 7, 7])


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("import sys; sys.exit('no such module')", "its last words: no such module"),
        ("print('ready')", "not ready"),
        ("import time; time.sleep(60)", "not ready as work after 2 s; it said nothing"),
    ],
)
async def test_process_that_is_not_ready_says_why(monkeypatch: pytest.MonkeyPatch, program: str, problem: str) -> None:
    monkeypatch.setattr("bench.peers.child._START", 2.0)
    monkeypatch.setattr("bench.peers.child._GRACE", 0.1)
    with pytest.raises(PeerError, match=problem):
        async with child([sys.executable, "-c", program], "work", {}):
            pass


async def measured(
    monkeypatch: pytest.MonkeyPatch, server: Server, settings: Settings, peers: Sequence[Peer], plan: script.Plan = PLAN
) -> dict[str, Result]:
    """Results of ours and some peers."""
    changed = script.parse(["--quick", "--runs", str(plan.runs), "--seconds", str(plan.seconds)])
    monkeypatch.setattr(script, "PEERS", tuple(peers))
    wanted = dataclasses.replace(changed, peers=tuple(peers), lone=2, workers=1)
    return {result.name: result for result in await script.measure(wanted, Base(server.url(), None), settings)}


async def test_peer_that_cannot_be_had_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, durable_server: Server, settings: Settings
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    missing = Peer("graphile-worker", "node", 5)
    found = await measured(monkeypatch, durable_server, settings, [missing, HAND_WRITTEN])
    assert found["graphile-worker"].problem == "there is no node here"
    assert len(found["hand-written"].turns) == len(found["partita"].turns) == 1
    lines = [json.loads(figure.line()) for figure in report.figures(found.values())]
    ours = {"partita", "partita, unrecorded", "bare-sql"}
    assert {line["setting"]["peer"] for line in lines} == {*ours, "graphile-worker", "hand-written"}
    why = {line["setting"].get("why") for line in lines if line["value"] is None}
    assert why == {"there is no node here"}


async def test_peer_that_takes_too_long_is_left_out(
    monkeypatch: pytest.MonkeyPatch, durable_server: Server, settings: Settings
) -> None:
    plan = script.parse(["--quick", "--seconds", "0.01"])
    found = await measured(monkeypatch, durable_server, settings, [HAND_WRITTEN], plan)
    assert found["hand-written"].problem == "no turn was done in 0 s"
    assert found["partita"].problem is None


def test_a_problem_takes_away_what_was_measured_before_it() -> None:
    result = Result("slow", turns=[Turn(10.0, 1.0, 1.0, 1.0, (1.0,))], problem="lost its work")
    figures = report.figures([result])
    assert {figure.value for figure in figures} == {None}
    assert all(figure.setting["why"] == "lost its work" for figure in figures)
    assert "slow: no figures: lost its work" in report.table([result])


def test_table_has_the_fastest_first() -> None:
    results = [Result(name, turns=[Turn(rate, 1.0, 1.0, 1.0, (1.0,))]) for name, rate in (("b", 5.0), ("a", 7.0))]
    results.append(Result("c", problem="none"))
    assert [line.split()[0] for line in report.table(results).splitlines()] == ["peer", "a", "b", "c", "c:"]


def test_every_peer_has_its_adapter_and_its_version_pinned() -> None:
    lists = (install.REQUIREMENTS, install.MANIFEST, FOLDER / "adapters" / "river" / "go.mod")
    pinned = " ".join(path.read_text("utf-8") for path in lists)
    for peer in PEERS:
        module = install.ROOT / f"{peer.adapter.replace('.', '/')}.py"
        path = {"node": Path(peer.adapter), "go": Path(peer.adapter) / "main.go"}.get(peer.runtime, module)
        assert path.is_file(), peer
        assert peer.runtime == "own" or peer.name in pinned, peer
    adapters = {path.stem for path in (FOLDER / "adapters").iterdir() if path.name != "__pycache__"}
    assert adapters == {"__init__", *(peer.name.replace("-", "_") for peer in PEERS)}


def test_command_line_names_the_peers(durable_server: Server) -> None:
    done = bench(
        durable_server, "peers", "--quick", "--only", "hand-written", "--workers", "1", "--seconds", "90", "--strict"
    )
    assert done.returncode == 0, done.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(set(line) == FIELDS for line in lines)
    both = {"peer_throughput", "peer_latency_p50", "peer_latency_p99", "peer_wal", "peer_commits", "peer_cpu"}
    for name in ("partita", "hand-written"):
        figures = {line["figure"] for line in lines if line["setting"]["peer"] == name}
        assert figures | {"peer_cpu"} == both  # left out when a tiny round took less than a tick of 10 ms
    assert all(line["value"] > 0 for line in lines if line["figure"] != "peer_cpu")


def test_unknown_peer_is_refused(durable_server: Server) -> None:
    done = bench(durable_server, "peers", "--quick", "--only", "nobody")
    assert done.returncode == 2
    assert "--only: unknown peer nobody; expected of pgqueuer" in done.stderr
