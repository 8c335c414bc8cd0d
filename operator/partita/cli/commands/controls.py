"""Commands that change a run: signal, suspend, resume, cancel."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated
from uuid import uuid4

import typer

from partita.cli import names, options
from partita.cli.backend import Backend, RunDetail
from partita.cli.connect import Target, on_backend
from partita.cli.documents import json_value
from partita.cli.nodes import settled
from partita.cli.output import Format, note, print_json
from partita.cli.who import person
from partita.domain.errors import InvalidError, Problem
from partita.domain.names import REASON, SIGNAL_IDENTITY, SIGNAL_NAME


class Mode(StrEnum):
    """How a run is cancelled."""

    GRACEFUL = "Graceful"
    NOW = "Now"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (signal, suspend, resume, cancel):
        app.command(rich_help_panel=options.RUNS)(command)


def signal(
    run: options.Run,
    name: Annotated[
        str,
        typer.Argument(
            metavar="EVENT",
            callback=names.optional("EVENT", SIGNAL_NAME),
            help="Name of the event that the run waits for.",
        ),
    ],
    payload: Annotated[str, typer.Argument(metavar="[JSON]", help="Payload as JSON, or @file.json.")] = "null",
    signal_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            callback=names.optional("--id", SIGNAL_IDENTITY),
            help="Sending the same id again changes nothing; without it a new one.",
        ),
    ] = None,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Send an event to a run. It is kept when the run does not wait for it yet."""
    value = json_value(payload, "PAYLOAD")
    identity = signal_id or str(uuid4())

    async def work(backend: Backend) -> tuple[str, str]:
        answer = await backend.signal(namespace, run, name, value, identity, person())
        return answer, _awaited(await backend.get(namespace, run), name) if answer == "Accepted" else ""

    answer, awaited = on_backend(options.target(database_url, kubeconfig, context), work)
    _say({"run": run, "signal": name, "id": identity, "state": answer}, output, f"signal {name} to {run}: {answer}")
    if awaited and output is not Format.JSON:
        note(f"nobody waits for {name} yet; the run waits for: {awaited}")


def _awaited(detail: RunDetail, name: str) -> str:
    """The events that a run waits for, where this one is not among them."""
    words = ", ".join(detail.events) or detail.run.waiting.removeprefix("event ")
    waits = bool(detail.events) or detail.run.waiting.startswith("event ")
    return words if waits and name not in detail.events and name not in words.split() else ""


def suspend(
    run: options.Run,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Start nothing new in a run and freeze its waits; attempts in flight finish."""
    _suspend(run, namespace, output, options.target(database_url, kubeconfig, context), suspended=True)


def resume(
    run: options.Run,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Let a suspended run go on, with the time that was left."""
    _suspend(run, namespace, output, options.target(database_url, kubeconfig, context), suspended=False)


def cancel(
    run: options.Run,
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            callback=names.repeated("--node", names.NODE),
            help="Cancel only this node while the run goes on; repeatable.",
        ),
    ] = None,
    mode: Annotated[
        Mode, typer.Option("--mode", case_sensitive=False, help="Now skips undo and finally.")
    ] = Mode.GRACEFUL,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            show_default=False,
            callback=names.optional("--reason", REASON),
            help="Kept in the run's history.",
        ),
    ] = "",
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """End a run as Cancelled, or with --node cancel some of its nodes."""
    nodes = tuple(dict.fromkeys(node or ()))
    if nodes and mode is Mode.NOW:
        problem = Problem("--mode", "Now ends the whole run; expected --node without it")
        raise InvalidError("cancel", (problem,), hint=f"partita cancel {run} --node {nodes[0]}")

    target = options.target(database_url, kubeconfig, context)
    if nodes:
        _cancel_nodes(run, namespace, nodes, reason, output, target)
        return

    async def work(backend: Backend) -> bool:
        return await backend.cancel(namespace, run, mode.value, reason)

    answered = on_backend(target, work)
    record: dict[str, object] = {"run": run, "cancel": mode.value, "answered": answered}
    _say(record, output, _sentence(run, "cancel requested", answered))


def _cancel_nodes(
    run: str, namespace: str, nodes: tuple[str, ...], reason: str, output: Format, target: Target
) -> None:
    async def work(backend: Backend) -> tuple[dict[str, str], bool]:
        ended = settled((await backend.get(namespace, run)).nodes, nodes)
        return ended, await backend.cancel_nodes(namespace, run, nodes, reason)

    ended, answered = on_backend(target, work)
    record = {"run": run, "cancelNodes": list(nodes), "answered": answered, "settled": ended}
    asked = [name for name in nodes if name not in ended]
    words = [f"cancel of {', '.join(asked)} requested"] if asked else []
    words += [f"{name} is {state} already, nothing to cancel" for name, state in ended.items()]
    _say(record, output, _sentence(run, "; ".join(words), answered))


def _suspend(run: str, namespace: str, output: Format, target: Target, *, suspended: bool) -> None:
    async def work(backend: Backend) -> bool:
        return await backend.suspend(namespace, run, suspended=suspended)

    answered = on_backend(target, work)
    sentence = _sentence(run, "suspended" if suspended else "resumed", answered)
    _say({"run": run, "suspended": suspended, "answered": answered}, output, sentence)


def _sentence(run: str, done: str, answered: bool) -> str:
    return f"run {run}: {done}" if answered else f"run {run}: sent; the operator has not answered yet"


def _say(record: dict[str, object], output: Format, sentence: str) -> None:
    if output is Format.JSON:
        print_json(record)
    else:
        note(sentence)
