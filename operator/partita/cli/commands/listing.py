"""``partita list``: which runs there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, TypeAlias

import typer

from partita.cli import names, options
from partita.cli.backend import Backend, RunLine, RunList, RunQuery, RunTotal
from partita.cli.connect import on_backend
from partita.cli.documents import moment, texts
from partita.cli.output import Format, age, note, print_json, print_table, state, stdout
from partita.domain.names import OBJECT, TAG

_Namespace: TypeAlias = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        show_default=False,
        callback=names.namespace,
        help="Only this namespace; without it that of the kubeconfig's context, or with a database all.",
    ),
]
_All: TypeAlias = Annotated[bool, typer.Option("-A", "--all-namespaces", help="Every namespace.")]
_Definition: TypeAlias = Annotated[
    str | None,
    typer.Option("--definition", callback=names.optional("--definition", OBJECT), help="Only runs of this definition."),
]
_Phase: TypeAlias = Annotated[
    list[str] | None, typer.Option("--phase", "--status", help="Only this phase; repeatable, any may fit.")
]
_Tag: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tag", callback=names.repeated("--tag", TAG), help="Only with this tag; repeatable, all must fit."),
]
_Attribute: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME=VALUE", help="Only with this attribute; repeatable, all must fit."),
]
_StartedBy: TypeAlias = Annotated[
    str | None,
    typer.Option("--started-by", show_default=False, help="Only runs that this person or object started."),
]
_Since: TypeAlias = Annotated[
    str, typer.Option("--since", show_default=False, help="Only runs made since a time, or for so long, such as 2h.")
]
_Before: TypeAlias = Annotated[
    str,
    typer.Option(
        "--before", "--until", show_default=False, help="Only runs made before a time, or older than, such as 7d."
    ),
]
_Parent: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--parent",
        metavar="RUN",
        show_default=False,
        callback=names.optional_parent,
        help="Only children of this run, those of subflows too, which no other list has.",
    ),
]
_Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, max=1000, help="Runs a page.")]
_Count: TypeAlias = Annotated[
    bool, typer.Option("--count", help="Only say how many there are; with a database counted up to 10,000.")
]
_Cursor: TypeAlias = Annotated[str, typer.Option("--cursor", show_default=False, help="Where the page before ended.")]


_EMPTY: Final = "no runs; try: partita submit FILE"
_NONE_FIT: Final = "no runs fit; try: partita list, with fewer filters"
_READ_ON: Final = 50
"""Short pages that are joined to one."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("list", rich_help_panel=options.RUNS)(list_runs)


def list_runs(
    namespace: _Namespace = "",
    all_namespaces: _All = False,
    definition: _Definition = None,
    phase: _Phase = None,
    tag: _Tag = None,
    attribute: _Attribute = None,
    started_by: _StartedBy = None,
    since: _Since = "",
    before: _Before = "",
    parent: _Parent = None,
    limit: _Limit = 50,
    cursor: _Cursor = "",
    count: _Count = False,
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

    target = options.target(database_url, kubeconfig, context)
    if count:
        _print_total(on_backend(target, lambda backend: backend.count(query)), output)
        return

    async def work(backend: Backend) -> RunList:
        return await _filled(backend, query)

    page = on_backend(target, work)
    if output is Format.JSON:
        print_json(page)
        return
    columns = ("namespace", "name", "definition", "phase", "progress", "waiting", "age", "run id")
    print_table(columns, (_row(run) for run in page.runs), empty=_empty(query, page))
    if page.cursor:
        note(f"more: --cursor {page.cursor}")


async def _filled(backend: Backend, query: RunQuery) -> RunList:
    """A page, read on for a while where few of many runs fit: the first pages may then be short."""
    page = await backend.list(query)
    for _ in range(_READ_ON):
        if not page.cursor or len(page.runs) >= query.limit:
            break
        rest = await backend.list(replace(query, cursor=page.cursor, limit=query.limit - len(page.runs)))
        page = RunList(runs=page.runs + rest.runs, cursor=rest.cursor)
    return page


def _empty(query: RunQuery, page: RunList) -> str:
    """What a table without a row says."""
    if page.cursor:
        return "no run found yet"
    filters = (query.definition, query.phases, query.tags, query.attributes, query.started_by, query.parent)
    return _NONE_FIT if any((*filters, query.since, query.before, query.cursor)) else _EMPTY


def _print_total(total: RunTotal, output: Format) -> None:
    if output is Format.JSON:
        print_json(total)
    else:
        stdout.print(f"{total.count:,}{'' if total.exact else '+'}", highlight=False)


def _row(run: RunLine) -> tuple[object, ...]:
    name = (run.namespace, run.name, run.definition, state(run.phase), run.progress, run.waiting)
    return (*name, age(run.created_at), run.id)


def _phase(word: str) -> str:
    from partita.domain.state.rows import RunStatus

    known = {status.value.lower(): status.value for status in RunStatus}
    if word.lower() not in known:
        raise typer.BadParameter(f"{word!r} is no phase; expected one of {', '.join(known.values())}")
    return known[word.lower()]
