"""Commands that change a run: signal, suspend, resume, cancel."""

from __future__ import annotations

import getpass
from enum import StrEnum
from typing import Annotated

import typer
import uuid6

from partita.cli import options
from partita.cli.backend import Backend
from partita.cli.connect import Target, on_backend
from partita.cli.documents import json_value
from partita.cli.output import Format, note, print_json


class Mode(StrEnum):
    """How a run is cancelled."""

    GRACEFUL = "Graceful"
    NOW = "Now"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (signal, suspend, resume, cancel):
        app.command()(command)


def signal(
    run: options.Run,
    name: Annotated[str, typer.Argument(help="Name of the event that the run waits for.")],
    payload: Annotated[str, typer.Argument(help="JSON payload, or @file.json.")] = "null",
    signal_id: Annotated[str, typer.Option("--id", help="Sending the same id again changes nothing.")] = "",
    namespace: options.Namespace = "default",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Send an event to a run. It is kept when the run does not wait for it yet."""
    value = json_value(payload, "PAYLOAD")
    identity = signal_id or str(uuid6.uuid7())

    async def work(backend: Backend) -> str:
        return await backend.signal(namespace, run, name, value, identity, getpass.getuser())

    answer = on_backend(options.target(database_url, kubeconfig, context), work)
    _say({"run": run, "signal": name, "id": identity, "state": answer}, output, f"signal {name} to {run}: {answer}")


def suspend(
    run: options.Run,
    namespace: options.Namespace = "default",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Start nothing new in a run and freeze its waits; attempts in flight finish."""
    _suspend(run, namespace, output, options.target(database_url, kubeconfig, context), suspended=True)


def resume(
    run: options.Run,
    namespace: options.Namespace = "default",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Let a suspended run go on, with the time that was left."""
    _suspend(run, namespace, output, options.target(database_url, kubeconfig, context), suspended=False)


def cancel(
    run: options.Run,
    mode: Annotated[Mode, typer.Option("--mode", help="Now skips the clean-up of the run.")] = Mode.GRACEFUL,
    reason: Annotated[str, typer.Option("--reason", help="Kept in the run's history.")] = "",
    namespace: options.Namespace = "default",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """End a run as Cancelled."""

    async def work(backend: Backend) -> None:
        await backend.cancel(namespace, run, mode.value, reason)

    on_backend(options.target(database_url, kubeconfig, context), work)
    _say({"run": run, "cancel": mode.value}, output, f"run {run}: cancel requested")


def _suspend(run: str, namespace: str, output: Format, target: Target, *, suspended: bool) -> None:
    async def work(backend: Backend) -> None:
        await backend.suspend(namespace, run, suspended=suspended)

    on_backend(target, work)
    word = "suspended" if suspended else "resumed"
    _say({"run": run, "suspended": suspended}, output, f"run {run}: {word}")


def _say(record: dict[str, object], output: Format, sentence: str) -> None:
    if output is Format.JSON:
        print_json(record)
    else:
        note(sentence)
