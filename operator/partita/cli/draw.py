"""A run as a picture: what every node does now, and what came of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import orjson
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from partita.cli.backend import NodeSummary, RunDetail
from partita.cli.output import age, state

_GLYPHS = {
    "Pending": "·",
    "Queued": "○",
    "Running": "●",
    "Waiting": "◔",
    "Completed": "✔",
    "Failed": "✘",
    "Skipped": "⤼",
    "Cancelled": "■",
}


@contextmanager
def drawing(console: Console) -> Iterator[Callable[[RenderableType], None]]:
    """Draw each picture over the one before; in a file or a pipe, print the last one at the end."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda shown: live.update(shown, refresh=True)
        return
    last: deque[RenderableType] = deque(maxlen=1)
    try:
        yield last.append
    finally:
        for shown in last:
            console.print(shown)


def picture(detail: RunDetail) -> RenderableType:
    """The run's headline, a line for each node, and its output or error once it has ended."""
    parts: list[RenderableType] = [_headline(detail), _nodes(detail.nodes)]
    if detail.run.waiting and not detail.run.finished:
        parts.append(Text(f"waiting for {detail.run.waiting}", style="yellow"))
    if detail.error:
        parts.append(Text(f"error: {detail.error.get('type')}: {detail.error.get('message')}", style="red"))
    if detail.output is not None:
        parts.append(Text(f"output: {orjson.dumps(detail.output).decode()}", style="green"))
    return Group(*parts)


def _headline(detail: RunDetail) -> Text:
    run = detail.run
    version = f" v{run.version}" if run.version is not None else ""
    line = Text.assemble((run.name, "bold"), f"  {run.definition}{version}  ", state(run.phase))
    line.append(f"  {run.progress}  {age(run.created_at, run.finished_at)}")
    return line.append(f"  {run.message}" if run.message and not detail.error else "")


def _nodes(nodes: tuple[NodeSummary, ...]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for node in nodes:
        colour = state(node.state).style
        tries = f"attempt {node.attempt}" if node.attempt > 1 else ""
        table.add_row(
            Text(f"  {_GLYPHS.get(node.state, '?')}", style=colour),
            Text(node.name),
            state(node.state),
            Text(tries),
            Text(node.message, style="bright_black"),
        )
    return table
