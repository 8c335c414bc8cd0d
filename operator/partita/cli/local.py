"""Runs of a manifest on this machine alone, drawn live: what ``partita dev run`` does.

Invariant: the manifests, the engine and the worker are those of the cluster; only the database is embedded and the
worker lives in this process. Nothing is simulated, so what runs here runs there.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rich.console import Group
from rich.text import Text

from partita.cli import apart
from partita.cli.backend import Backend, PartlySubmittedError, RunDetail, Submitted
from partita.cli.connect import Target, settings_for
from partita.cli.database import DatabaseBackend
from partita.cli.draw import drawing, picture
from partita.cli.output import Format, note, stderr, stdout
from partita.domain.errors import ConflictError, InvalidError, NotFoundError, Problem
from partita.domain.payload import Json
from partita.minting import new_id
from partita.settings import Settings
from partita.store import embedded, migrations, partitions
from partita.worker import Tasks, load
from partita.worker.binding import InvalidTaskInputError
from partita.worker.process import serve

_PAUSE_SECONDS = 0.2
_OPEN = ("Pending", "Running", "Suspended")


async def run_documents(
    settings: Settings,
    registry: Tasks,
    documents: Sequence[Mapping[str, Json]],
    events: list[tuple[str, Json]],
    output: Format,
) -> list[RunDetail]:
    """Deploy and start what the documents say, and follow each run to its end; events answer its waits.

    However it ends, no run that it started goes on.
    """
    _log_to_stderr()
    await migrations.migrate(settings.database)
    await partitions.ensure(settings)
    serving = apart.serving(settings, documents)
    async with await DatabaseBackend.open(settings) as backend, _serving(serving, registry):
        runs = await _submitted(backend, documents)
        try:
            return [await _follow(backend, run_id, events, output) for run_id in runs]
        finally:
            await apart.leave_nothing(backend, runs)


async def _submitted(backend: DatabaseBackend, documents: Sequence[Mapping[str, Json]]) -> list[str]:
    """Ids of the runs; where some cannot start none stays."""
    try:
        return _runs(await backend.submit(apart.NAMESPACE, documents))
    except PartlySubmittedError as error:
        await apart.leave_nothing(backend, _runs(error.done))
        raise error.error from error


def _runs(done: Iterable[Submitted]) -> list[str]:
    return [item.id for item in done if item.kind == "WorkflowRun"]


async def _follow(backend: DatabaseBackend, run_id: str, events: list[tuple[str, Json]], output: Format) -> RunDetail:
    """Draw one run to its end, and answer its waits with the events that were given, each once."""
    answers = Answers(backend, run_id, events)
    last: RunDetail | None = None
    console = stdout if output is Format.TABLE else stderr
    told: set[str] = set()
    with drawing(console) as show:
        async for last in _views(backend, run_id, answers):
            hints = [f"nobody sends event {name}; try: --event {name}='JSON'" for name in sorted(answers.missing)]
            show(Group(picture(last), *(Text(hint, style="yellow") for hint in hints)))
            if not console.is_terminal:  # the picture comes at the end, which is not near
                for hint in sorted(set(hints) - told):
                    note(f"run {last.run.name}: {hint}")
            told.update(hints)
    for name, _ in answers.left:
        note(f"event {name}: the run never waited for it")
    if last is None:
        raise AssertionError(run_id)
    return last


async def _views(backend: DatabaseBackend, run_id: str, answers: Answers) -> AsyncIterator[RunDetail]:
    """The run each time that it looks different, or waits for something else below."""
    last: tuple[RunDetail, frozenset[str]] | None = None
    while True:
        detail = await backend.get("", run_id)
        await answers.give(detail)
        if last != (detail, answers.missing):
            yield detail
            last = (detail, answers.missing)
        if detail.run.finished:
            return
        await asyncio.sleep(_PAUSE_SECONDS)


class Answers:
    """Events given on the command line, sent to whichever run of a tree waits for them."""

    def __init__(self, backend: Backend, run_id: str, events: list[tuple[str, Json]]) -> None:
        self._backend = backend
        self._run = run_id
        self._given = frozenset(name for name, _ in events)
        self.left = list(events)
        """Events that nobody has waited for yet."""
        self.missing: frozenset[str] = frozenset()
        """Names that are waited for and that nobody sends."""

    async def give(self, detail: RunDetail) -> None:
        """Look at a run and its unfinished children, and send what they wait for."""
        awaited = {
            name async for run, names in self._waiting(self._run, detail) for name in await self._send(run, names)
        }
        self.missing = frozenset(awaited - self._given)

    async def _waiting(self, run: str, detail: RunDetail) -> AsyncIterator[tuple[str, tuple[str, ...]]]:
        """Runs with the events that they wait for; the waits of subflows stand in their parent's mailbox."""
        todo = [(run, detail)]
        while todo:
            run, detail = todo.pop()
            if detail.events and "/" not in detail.run.definition:
                yield run, detail.events
            for child in [child.id for node in detail.nodes for child in node.children if child.phase in _OPEN]:
                with contextlib.suppress(NotFoundError):  # it is about to start
                    todo.append((child, await self._backend.get("", child)))

    async def _send(self, run: str, names: tuple[str, ...]) -> tuple[str, ...]:
        for item in [item for item in self.left if item[0] in names]:
            self.left.remove(item)
            try:
                await self._backend.signal("", run, item[0], item[1], str(new_id()), "partita dev")
            except ConflictError as error:
                self._given -= {item[0]}
                note(f"--event {item[0]}: {error.message}")
        return names


class _Stderr(logging.Handler):
    """Standard error as it is at the moment: while a picture is drawn, lines go above it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; where it was the input that did not fit, no place in this package says more."""
        if record.exc_info and isinstance(record.exc_info[1], InvalidTaskInputError):
            record = copy(record)
            record.exc_info = record.exc_text = None
        sys.stderr.write(self.format(record) + "\n")


def _log_to_stderr() -> None:
    """Show what tasks say and why they fail; of everything else warnings only."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", handlers=[_Stderr()])
    logging.getLogger("partita.task").setLevel(logging.INFO)


class _Stop:
    """Ends the worker of this process when the runs are over."""

    def __init__(self) -> None:
        self._handlers: list[Callable[[], None]] = []

    def subscribe(self, signals: Iterable[signal.Signals], handler: Callable[[], None]) -> None:
        """Remember what a signal would do."""
        del signals  # Ctrl-C ends the whole command
        self._handlers.append(handler)

    def unsubscribe(self, signals: Iterable[signal.Signals]) -> None:
        """Forget it."""
        del signals
        self._handlers.clear()

    def __call__(self) -> None:
        for handler in self._handlers:
            handler()


@contextlib.asynccontextmanager
async def _serving(settings: Settings, registry: Tasks) -> AsyncIterator[None]:
    """A worker beside the block."""
    stop = _Stop()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(settings, registry, signals=stop))
        try:
            yield
        finally:
            stop()


def _schema() -> str:
    """A schema for this version's tables, so that programs of several versions can share the embedded server."""
    content = "".join(file.text for file in migrations.available())
    return f"partita_dev_{sha256(content.encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def local_database(database_url: str) -> Iterator[Settings]:
    """Settings with this database, or with an embedded one that runs as long as the block."""
    settings = settings_for(Target(database_url=database_url))
    # The only worker is this process, so that a type that it does not know never becomes known.
    engine = dataclasses.replace(settings.engine, unknown_types=0)
    settings = dataclasses.replace(settings, engine=engine)
    if database_url:
        yield settings
        return
    with embedded.shared(embedded.Server(embedded.default_folder())) as server:
        database = dataclasses.replace(settings.database, url=server.url(), schema=_schema())
        yield dataclasses.replace(settings, database=database)


def find_tasks(target: str, file: Path) -> Tasks:
    """The registry that --tasks names, or the object ``app`` of tasks.py beside the manifest."""
    sys.path.insert(0, str(Path.cwd()))
    if target:
        return load(target)
    beside = file.with_name("tasks.py")
    spec = spec_from_file_location("partita_dev_tasks", beside) if beside.is_file() else None
    if spec is None or spec.loader is None:
        problem = Problem("--tasks", f"is not given, and there is no {beside}; expected module:app")
        raise InvalidError("dev", (problem,), hint="partita dev run FILE --tasks package.module:app")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = getattr(module, "app", None)
    if not isinstance(found, Tasks):
        raise InvalidError("dev", (Problem(str(beside), "has no object app; expected app = Tasks()"),))
    return found
