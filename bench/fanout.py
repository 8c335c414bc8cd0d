"""Fan-out: whether a run's cost grows with its size: items of a loop, nodes of a chain, a wide join, children, undo.

Each figure is the time of one part of a run (an item, a node, a child), so that a cost that is linear shows as the same
figure for every size. A run's time goes from its recorded start to its recorded end, by the clock of the database; one
worker executes tasks that do nothing. Sizes take turns, so that all of them meet the same neighbours.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from bench.figures import Figure, emit, say
from bench.load import Load, loaded
from bench.loop import run
from bench.options import Options, as_setting, parse
from bench.postgres import measured
from bench.workload import NAMESPACE
from partita.engine.requests import StartRequest
from partita.settings import Settings
from partita.store.sql import substitute

GOAL: Final = 1.5
"""Most that an item of the largest loop may take, in times of an item of the smallest."""
ITEMS: Final = (100, 1_000, 10_000)
NARROW: Final = 20
"""A window that also the smallest loop has to refill. The usual one starts 100 items at once, and then none."""
CHAIN: Final = (10, 100, 1_000)
WAYS: Final = 64
NOOP: Final[dict[str, Any]] = {"task": {"type": "noop"}}
_TIMES: Final = """
SELECT extract(epoch FROM run.finished_at - run.started_at)::float8 AS whole,
       extract(epoch FROM run.finished_at - (
           SELECT at FROM :"schema".run_history WHERE run_id = run.id AND event = 'UndoStarted' LIMIT 1
       ))::float8 AS undo, run.status
FROM :"schema".workflow_runs AS run WHERE run.id = $1
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One shape of one size."""

    figure: str
    parts: int
    spec: dict[str, Any]
    undo: bool = False
    """Only the undoing is measured, of a run that is to fail."""


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(
        arguments, "fanout", "Time of an item, a node, a child.", runs=10_000, repeats=3, workers=1, submitters=1
    )
    with measured() as settings:
        emit(run(measure(settings, options)))


def cases(largest: int) -> list[Case]:
    """Everything that is measured; ``largest`` bounds the items of a loop and, by a tenth, nodes and children."""
    items = [count for count in ITEMS if count <= largest] or [largest]
    nodes = [count for count in CHAIN if count * 10 <= largest] or [max(2, largest // 10)]
    tenth = max(2, largest // 10)
    return [
        *(Case(f"item_of_{count}", count, loop(count)) for count in items),
        *(Case(f"narrow_item_of_{count}", count, loop(count, maxParallel=NARROW)) for count in items),
        *(Case(f"node_of_{count}", count, chain(count)) for count in nodes),
        Case(f"join_of_{WAYS}", WAYS, fan(WAYS)),
        Case(f"child_of_{tenth}", tenth, children(tenth)),
        Case(f"undo_of_{tenth}", tenth, undone(tenth), undo=True),
    ]


def loop(count: int, **course: Any) -> dict[str, Any]:
    """A forEach over so many items, with the usual window unless ``course`` says another."""
    return {"nodes": [{"name": "each", **NOOP, "forEach": {"items": f"${{range({count})}}", **course}}]}


def chain(count: int) -> dict[str, Any]:
    """So many tasks one after the other."""
    return {"nodes": [{"name": f"n{at}", **NOOP, "dependsOn": [f"n{at - 1}"] if at else []} for at in range(count)]}


def fan(count: int) -> dict[str, Any]:
    """So many tasks at once, and one that waits for all of them."""
    return {
        "nodes": [
            *({"name": f"n{at}", **NOOP} for at in range(count)),
            {"name": "join", **NOOP, "dependsOn": [f"n{at}" for at in range(count)]},
        ]
    }


def children(count: int) -> dict[str, Any]:
    """A loop over a subflow of one task."""
    flow = {"name": "one", "nodes": [{"name": "only", **NOOP}]}
    each = {"name": "each", "workflow": {"subflow": "one"}, "forEach": {"items": f"${{range({count})}}"}, "input": {}}
    return {"subflows": [flow], "nodes": [each]}


def undone(count: int) -> dict[str, Any]:
    """A loop whose items are reversed one after the other, since the run fails."""
    (each,) = loop(count)["nodes"]
    return {"nodes": [{**each, "undo": NOOP}, {"name": "fail", "dependsOn": ["each"], "fail": {"type": "refused"}}]}


async def measure(settings: Settings, options: Options) -> list[Figure]:
    """Every case, so many times."""
    chosen = cases(options.runs)
    samples: dict[str, list[float]] = {case.figure: [] for case in chosen}
    async with loaded(settings, options) as load:
        for case in chosen:
            await load.engine.deploy(NAMESPACE, _name(case), case.spec)
        await _once(load, chosen[0])
        for number in range(options.repeats):
            for case in chosen:
                samples[case.figure].append(await _once(load, case) / case.parts * 1e3)
            shown = ", ".join(f"{case.figure} {samples[case.figure][-1]:.2f} ms" for case in chosen)
            say(f"fanout {number + 1}/{options.repeats}: {shown}")
    return _figures(chosen, samples, options)


async def _once(load: Load, case: Case) -> float:
    """Seconds of one run, or of its undoing."""
    reply = await load.engine.start(StartRequest(namespace=NAMESPACE, definition=_name(case)))
    await load.ended()
    row = await _times(load, reply.run_id)
    expected = "Failed" if case.undo else "Succeeded"
    if row["status"] != expected:
        raise SystemExit(f"bench: {case.figure}: the run has {row['status']}; expected {expected}")
    return float(row["undo"] if case.undo else row["whole"])


async def _times(load: Load, run_id: UUID) -> dict[str, Any]:
    row = await load.observer.fetchrow(substitute(_TIMES, {"schema": load.engine.settings.database.schema}), run_id)
    return dict(row or {})


def _name(case: Case) -> str:
    return case.figure.replace("_", "-")


def _figures(chosen: list[Case], samples: dict[str, list[float]], options: Options) -> list[Figure]:
    setting = as_setting(options)
    figures = [
        Figure.median(case.figure, samples[case.figure], "ms", better="lower", setting={**setting, "parts": case.parts})
        for case in chosen
    ]
    for shape, least in (("item", GOAL), ("narrow_item", GOAL), ("node", None)):
        sizes = [case.figure for case in chosen if case.figure.startswith(f"{shape}_")]
        ratio = [large / small for small, large in zip(samples[sizes[0]], samples[sizes[-1]], strict=True)]
        words = {"of": sizes[-1], "to": sizes[0]}
        figures.append(Figure.median(f"{shape}_growth", ratio, "ratio", goal=least, better="lower", setting=words))
    rates = [1e3 / sample for case in chosen if case.figure.startswith("child") for sample in samples[case.figure]]
    say(f"{statistics.median(rates):,.0f} children/s")
    return [*figures, Figure.median("children", rates, "runs/s", setting=setting)]
