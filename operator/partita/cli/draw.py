"""A run as a picture: what every node does now, and what came of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final

import orjson
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from partita.cli.backend import NodeDetail, NodeLine, RunDetail
from partita.cli.output import age, print_shown, state, stdout
from partita.domain.payload import Json

MAIN: Final = "main"
_NOT_RUN: Final = Text("not run", style="bright_black")
"""Instead of Pending, of a node of a run that has ended."""

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
            if console is stdout:
                print_shown(shown)
            else:
                console.print(shown)


def picture(detail: RunDetail) -> RenderableType:
    """The run's headline, a line for each node and child, stage by stage, and its output or error once it has ended."""
    parts: list[RenderableType] = [_headline(detail)]
    for stage, nodes in groupby(detail.nodes, key=lambda node: node.stage):
        if stage != MAIN:
            parts.append(Text(f"  {stage}", style="bold"))
        parts.append(_nodes([*nodes], detail.run.finished))
    if detail.run.waiting and not detail.run.finished:
        parts.append(Text(f"waiting for {detail.run.waiting}", style="yellow"))
    if detail.error:
        parts.append(_error(detail.error))
    failed = [(node.name, node.message) for node in detail.nodes if node.stage == "undo" and node.state == "Failed"]
    if failed:
        from partita.kube.words import undo_failed  # noqa: PLC0415  # slow to import, and --help draws nothing

        parts.append(Text(undo_failed(failed), style="red"))
    if detail.output is not None:
        parts.append(Text(f"output: {_json(detail.output)}", style="green"))
    return Group(*parts)


def _headline(detail: RunDetail) -> Text:
    run = detail.run
    version = f" v{run.version}" if run.version is not None else ""
    line = Text.assemble((run.name, "bold"), f"  {run.definition}{version}  ", state(run.phase))
    line.append(f" ({run.stage})" if run.stage != MAIN and not run.finished else "")
    line.append(f"  {run.progress}  {age(run.created_at, run.finished_at)}")
    return line.append(f"  {run.message}" if run.message and not detail.error else "")


def _nodes(nodes: Sequence[NodeLine], finished: bool) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for node in nodes:
        tries = f"attempt {node.attempt}" if node.attempt > 1 else ""
        never = finished and node.state == "Pending"
        word, glyph = (_NOT_RUN, Text("  —", style=_NOT_RUN.style)) if never else (state(node.state), None)
        cells = (Text(node.name), word, Text(tries), Text(node.message, style="bright_black"))
        table.add_row(glyph or _glyph(node.state, 2), *cells)
        for child in node.children:
            place = "└ run" if child.index is None else f"└ run [{child.index}]"
            table.add_row("", Text(f"{place} {child.id}", style="bright_black"), state(child.phase), "", "")
        if node.more_children:
            table.add_row("", Text(f"└ … {node.more_children} more", style="bright_black"), "", "", "")
    return table


def node_picture(detail: NodeDetail) -> RenderableType:
    """One node, or one item of it: what went in, what came out, its items and its attempts."""
    name = detail.name if detail.index is None else f"{detail.name}[{detail.key or detail.index}]"
    line = Text.assemble((name, "bold"), f"  {detail.kind}  ", state(detail.state))
    line.append(f"  attempt {detail.attempt}" if detail.attempt else "")
    line.append(f"  queue {detail.queue}" if detail.queue else "")
    line.append(f"  worker {detail.worker}" if detail.worker else "")
    words = detail.progress if detail.error else detail.message
    line.append(f"  {words}" if words else "")
    line.append(f"  run {detail.child}" if detail.child else "")
    parts: list[RenderableType] = [line]
    parts += [
        Text(f"{what}: {_json(value)}")
        for what, value in (("input", detail.input), ("output", detail.output), ("event", detail.event))
        if value is not None
    ]
    if detail.error:
        parts.append(_error(detail.error))
    if detail.items:
        parts += [Text("items", style="bold"), _items(detail)]
    if detail.attempts:
        parts += [Text("attempts, the newest first", style="bold"), _attempts(detail)]
    return Group(*parts)


def _items(detail: NodeDetail) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for item in detail.items:
        tries = f"attempt {item.attempt}" if item.attempt > 1 else ""
        words = "  ".join(part for part in (f"run {item.child}" if item.child else "", item.message) if part)
        cells = (Text(f"[{item.key or item.index}]"), state(item.state), Text(tries), Text(words, style="bright_black"))
        table.add_row(_glyph(item.state, 2), *cells)
    return table


def _attempts(detail: NodeDetail) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for attempt in detail.attempts:
        place = f"[{attempt.index}] " if detail.items else ""
        words = f"{attempt.error.get('type')}: {attempt.error.get('message')}" if attempt.error else ""
        took = age(attempt.started_at, attempt.finished_at)
        cells = (f"  {place}attempt {attempt.attempt}", attempt.outcome, attempt.worker, took, words)
        table.add_row(*map(Text, cells))
    return table


def _glyph(name: str, indent: int) -> Text:
    return Text(" " * indent + _GLYPHS.get(name, "?"), style=state(name).style)


def _error(error: Json) -> Text:
    return Text(f"error: {error.get('type')}: {error.get('message')}", style="red")


def _json(value: Json) -> str:
    return orjson.dumps(value).decode()
