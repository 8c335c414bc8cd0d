"""Commands that start runs and look at them: submit, get, list, watch, wait."""

from __future__ import annotations

from typing import Annotated

import typer

from partita.cli import names, options
from partita.cli.backend import Backend, NodeDetail, NodeQuery, RunDetail, RunLine, RunList, RunQuery, Submitted
from partita.cli.connect import Target, on_backend
from partita.cli.documents import moment, read_documents, texts
from partita.cli.draw import drawing, node_picture, picture
from partita.cli.exits import Exit
from partita.cli.follow import follow
from partita.cli.output import Format, age, note, print_json, print_table, state, stdout
from partita.domain.durations import parse_duration
from partita.domain.errors import InvalidError, Problem
from partita.domain.names import OBJECT, TAG


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (submit, get, list_runs, watch, wait):
        name = "list" if command is list_runs else command.__name__
        app.command(name, rich_help_panel=options.RUNS)(command)


def submit(
    file: options.Manifest,
    namespace: options.Namespace = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """Deploy the definitions and start the runs of a manifest file; all of it is checked first."""
    documents = read_documents(file)
    target = options.target(database_url, kubeconfig, context)

    async def work(backend: Backend) -> list[Submitted]:
        return await backend.submit(namespace, documents)

    done = on_backend(target, work)
    if output is Format.JSON:
        print_json(done)
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
        int | None, typer.Option("--item", min=0, help="Only this item or iteration of the node.", show_default=False)
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
    stdout.print(node_picture(found))
    if found.cursor is not None:
        note(f"more items: --after {found.cursor}")


def list_runs(
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            show_default=False,
            callback=names.namespace,
            help="Only this namespace; without it that of the kubeconfig's context, or with a database all.",
        ),
    ] = "",
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="Every namespace.")] = False,
    definition: Annotated[
        str | None,
        typer.Option(
            "--definition", callback=names.optional("--definition", OBJECT), help="Only runs of this definition."
        ),
    ] = None,
    phase: Annotated[list[str] | None, typer.Option("--phase", help="Only this phase; repeatable.")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", callback=names.repeated("--tag", TAG), help="Only with this tag; repeatable, all must fit."
        ),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="NAME=VALUE", help="Only with this attribute; repeatable, all must fit."),
    ] = None,
    started_by: Annotated[
        str | None,
        typer.Option("--started-by", show_default=False, help="Only runs that this person or object started."),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", show_default=False, help="Only runs since a time, or for so long, such as 2h.")
    ] = "",
    before: Annotated[
        str, typer.Option("--before", show_default=False, help="Only runs before a time, or older than, such as 7d.")
    ] = "",
    parent: Annotated[
        str | None,
        typer.Option(
            "--parent",
            metavar="RUN",
            show_default=False,
            callback=names.optional_parent,
            help="Only children of this run, those of subflows too, which no other list has.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Runs a page.")] = 50,
    cursor: Annotated[str, typer.Option("--cursor", show_default=False, help="Where the page before ended.")] = "",
    output: options.Output = Format.TABLE,
    database_url: options.DatabaseUrl = "",
    kubeconfig: options.Kubeconfig = "",
    context: options.KubeContext = "",
) -> None:
    """List runs, newest first."""
    query = RunQuery(
        namespace=namespace,
        all_namespaces=all_namespaces,
        definition=definition,
        phases=tuple(_phase(word) for word in phase or ()),
        tags=tuple(tag or ()),
        attributes=texts(attribute or (), "--attribute"),
        started_by=started_by,
        since=moment(since, "--since"),
        before=moment(before, "--before"),
        parent=parent,
        limit=limit,
        cursor=cursor or None,
    )

    async def work(backend: Backend) -> RunList:
        return await backend.list(query)

    page = on_backend(options.target(database_url, kubeconfig, context), work)
    if output is Format.JSON:
        print_json(page)
        return
    columns = ("namespace", "name", "definition", "phase", "progress", "waiting", "age", "run id")
    print_table(columns, (_row(run) for run in page.runs), empty="no runs; try: partita submit FILE")
    if page.cursor:
        note(f"more: --cursor {page.cursor}")


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
        stdout.print(picture(detail))


def _row(run: RunLine) -> tuple[object, ...]:
    name = (run.namespace, run.name, run.definition, state(run.phase), run.progress, run.waiting)
    return (*name, age(run.created_at), run.id)


def _phase(word: str) -> str:
    from partita.domain.state.rows import RunStatus

    known = {status.value.lower(): status.value for status in RunStatus}
    if word.lower() not in known:
        raise typer.BadParameter(f"{word!r} is no phase; expected one of {', '.join(known.values())}")
    return known[word.lower()]
