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
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rich.console import Group
from rich.text import Text

from partita.cli.backend import RunDetail
from partita.cli.connect import Target, settings_for
from partita.cli.database import DatabaseBackend
from partita.cli.draw import drawing, picture
from partita.cli.follow import follow
from partita.cli.output import Format, note, stderr, stdout
from partita.domain.errors import InvalidError, Problem
from partita.domain.payload import Json
from partita.minting import new_id
from partita.settings import Settings
from partita.store import embedded, migrations, partitions
from partita.worker import Tasks, load
from partita.worker.process import serve

_NAMESPACE = "default"


async def run_documents(
    settings: Settings,
    registry: Tasks,
    documents: Sequence[Mapping[str, Json]],
    events: list[tuple[str, Json]],
    output: Format,
) -> list[RunDetail]:
    """Deploy and start what the documents say, and follow each run to its end; events answer its waits."""
    _log_to_stderr()
    await migrations.migrate(settings.database)
    await partitions.ensure(settings)
    async with await DatabaseBackend.open(settings) as backend, _serving(settings, registry):
        runs = [item.id for item in await backend.submit(_NAMESPACE, documents) if item.kind == "WorkflowRun"]
        return [await _follow(backend, run_id, events, output) for run_id in runs]


async def _follow(backend: DatabaseBackend, run_id: str, events: list[tuple[str, Json]], output: Format) -> RunDetail:
    """Draw one run to its end, and answer its waits with the events that were given, each once."""
    left = list(events)
    last: RunDetail | None = None
    console = stdout if output is Format.TABLE else stderr
    told: set[str] = set()
    with drawing(console) as show:
        async for last in _views(backend, run_id, left):
            missing = sorted(awaited(last) - {name for name, _ in events})
            hints = [f"nobody sends event {name}; try: --event {name}='JSON'" for name in missing]
            show(Group(picture(last), *(Text(hint, style="yellow") for hint in hints)))
            if not console.is_terminal:  # the picture comes at the end, which is not near
                for hint in sorted(set(hints) - told):
                    note(f"run {last.run.name}: {hint}")
            told.update(hints)
    for name, _ in left:
        note(f"event {name}: the run never waited for it")
    if last is None:
        raise AssertionError(run_id)
    return last


async def _views(backend: DatabaseBackend, run_id: str, left: list[tuple[str, Json]]) -> AsyncIterator[RunDetail]:
    async for detail in follow(backend, _NAMESPACE, run_id):
        yield detail
        for item in [item for item in left if item[0] in awaited(detail)]:
            left.remove(item)
            await backend.signal(_NAMESPACE, run_id, item[0], item[1], str(new_id()), "partita dev")


def awaited(detail: RunDetail) -> frozenset[str]:
    """Names of the events that nodes of the run wait for."""
    waiting = (node.message for node in detail.nodes if node.state == "Waiting")
    words = (word.partition(" (")[0] for message in waiting for word in message.split("; "))
    return frozenset(word.removeprefix("event ") for word in words if word.startswith("event "))


class _Stderr(logging.Handler):
    """Standard error as it is at the moment: while a picture is drawn, lines go above it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
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
