"""Commands that start runs and look at them: submit, get, watch, wait."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from partita.cli import names, options
from partita.cli.backend import Backend, NodeDetail, NodeQuery, PartlySubmittedError, RunDetail, Submitted
from partita.cli.commands.bulk import Order, submit_inputs
from partita.cli.connect import Target, on_backend
from partita.cli.documents import read_documents
from partita.cli.draw import drawing, node_picture, picture
from partita.cli.exits import Exit
from partita.cli.follow import follow
from partita.cli.output import Format, note, print_json, print_shown, print_table, stdout
from partita.domain.durations import parse_duration
from partita.domain.errors import InvalidError, Problem


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (submit, get, watch, wait):
        app.command(rich_help_panel=options.RUNS)(command)


def submit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="YAML file with definitions and runs, - reads standard input; with --inputs a definition's name.",
        ),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            metavar="FILE",
            show_default=False,
            help="JSON Lines, one input a line, each of which starts a run; - reads standard input. Database only.",
        ),
    ] = None,
    idempotency_prefix: Annotated[
        str,
        typer.Option(
            "--idempotency-prefix",
            show_default=False,
            help="With --inputs: a line's key is this and its number, so that a file sent twice starts nothing twice.",
        ),
    ] = "",
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", show_default=False, help="With --inputs: a tag of the runs; repeatable."),
    ] = None,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Deploy the definitions, then start the runs of a manifest file; all of it is checked first.

    With --inputs, start a run of a deployed definition for each line of a file, whatever becomes of the other lines.
    """
    target = options.target(database_url, kubeconfig, context)
    if inputs is not None:
        order = Order(
            definition=str(file), inputs=inputs, namespace=namespace, key_prefix=idempotency_prefix, tags=tags or ()
        )
        submit_inputs(target, order, output)
        return
    if idempotency_prefix or tags:
        raise InvalidError(
            "submit", (Problem("--inputs", "is not given; expected with --idempotency-prefix or --tag"),)
        )
    documents = read_documents(file)

    async def work(backend: Backend) -> list[Submitted]:
        return await backend.submit(namespace, documents)

    try:
        _show_submitted(on_backend(target, work), output)
    except PartlySubmittedError as error:
        _show_submitted(error.done, output)
        raise error.error from error


def _show_submitted(done: Sequence[Submitted], output: Format) -> None:
    if output is Format.JSON:
        print_json([*done])
        return
    rows = [(item.kind, item.namespace, item.name, item.result, item.id) for item in done]
    print_table(("kind", "namespace", "name", "result", "run id"), rows, empty="nothing to submit")
    for item in done:
        if item.kind == "WorkflowRun":
            note(f"follow it: partita watch {item.reference} -n {item.namespace}")


def get(
    run: options.Run,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            callback=names.optional("--node", names.ROW),
            help="Only this node, with its input, output, items and attempts; name~undo is what reverses it.",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option("--item", help="Only this item or iteration of the node, by number or key.", show_default=False),
    ] = None,
    after: Annotated[int, typer.Option("--after", min=-1, help="Items after this one.", show_default=False)] = -1,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Most items, and most attempts.")] = 50,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Show one run: its nodes and children, what it waits for, its output or error; or one node of it."""
    target = options.target(database_url, kubeconfig, context)
    if node is not None:
        _get_node(target, namespace, run, NodeQuery(name=node, item=item, after=after, limit=limit), output)
        return
    if item is not None or after >= 0:
        problem = Problem("--node", "is not given; expected the node whose items are meant")
        raise InvalidError("get", (problem,), hint=f"partita get {run} --node NAME")

    async def work(backend: Backend) -> RunDetail:
        return await backend.get(namespace, run)

    _show(on_backend(target, work), output)


def _get_node(target: Target, namespace: str, run: str, query: NodeQuery, output: Format) -> None:
    async def work(backend: Backend) -> NodeDetail:
        return await backend.node(namespace, run, query)

    found = on_backend(target, work)
    if output is Format.JSON:
        print_json(found)
        return
    print_shown(node_picture(found))
    if found.cursor is not None:
        note(f"more items: --after {found.cursor}")


def watch(
    run: options.Run,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    timeout: options.Timeout = "",
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Draw a run live until it ends; with -o json print it each time it changes."""
    _follow(options.target(database_url, kubeconfig, context), namespace, run, timeout, output, draw=True)


def wait(
    run: options.Run,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    timeout: options.Timeout = "",
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Wait until a run ends; exits 0 when it succeeded, 1 when not, 6 when the time ran out."""
    _follow(options.target(database_url, kubeconfig, context), namespace, run, timeout, output, draw=False)


def _follow(target: Target, namespace: str, run: str, timeout: str, output: Format, *, draw: bool) -> None:
    seconds = _seconds(timeout)

    async def work(backend: Backend) -> RunDetail:
        views = follow(backend, namespace, run, timeout_seconds=seconds)
        last: RunDetail | None = None
        if draw and output is Format.TABLE:
            with drawing(stdout) as show:
                async for last in views:
                    show(picture(last))
        else:
            async for last in views:
                if draw:
                    print_json(last)
        if last is None:  # pragma: no cover  # follow yields at least once or raises
            raise AssertionError(run)
        return last

    detail = on_backend(target, work)
    if not draw:
        _show(detail, output)
    exit_by_result(detail)


def _seconds(timeout: str) -> float | None:
    if not timeout:
        return None
    try:
        return parse_duration(timeout) / 1000
    except ValueError as error:
        raise typer.BadParameter(f"--timeout: {error}") from error


def exit_by_result(detail: RunDetail) -> None:
    """Leave with the exit code of a finished run."""
    if not detail.run.succeeded:
        raise typer.Exit(Exit.RUN_FAILED)


def _show(detail: RunDetail, output: Format) -> None:
    if output is Format.JSON:
        print_json(detail)
    else:
        print_shown(picture(detail))
