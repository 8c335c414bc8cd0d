"""A local session apart from others: its own namespaces and queues, and nothing left behind.

Invariant: a session executes the runs that it started and no other's, though sessions share the embedded database; at
its end none of its runs is unfinished. Trade-off: expressions see a ``run.namespace`` with the session's mark behind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from partita.cli.backend import Backend
from partita.cli.output import note
from partita.domain.errors import PartitaError
from partita.domain.payload import Json
from partita.settings import Settings

NAMESPACE: Final = "default"
_LONGEST: Final = 48
"""Characters of a namespace that stay, so that the mark fits behind them."""
Document = Mapping[str, Any]


def marked(documents: Iterable[Document], mark: str) -> list[Document]:
    """The documents in namespaces of this session alone."""
    return [_marked(document, mark) for document in documents]


def _marked(document: Document, mark: str) -> Document:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("namespace", NAMESPACE), str):
        return document  # refused for it
    namespace = metadata.get("namespace", NAMESPACE)
    return {**document, "metadata": {**metadata, "namespace": f"{namespace[:_LONGEST]}-{mark}"}}


def serving(settings: Settings, documents: Sequence[Document]) -> Settings:
    """Settings of a worker of the queues and namespaces of these documents, and of no other namespace."""
    queues = dict.fromkeys((*settings.worker.queues, *_queues(documents)))
    metadata = [found for document in documents if isinstance(found := document.get("metadata"), dict)]
    names = {str(found.get("namespace", NAMESPACE)): None for found in metadata}
    worker = dataclasses.replace(settings.worker, queues=(*queues,), namespaces=(*names,))
    return dataclasses.replace(settings, worker=worker)


def _queues(value: Json) -> Iterator[str]:
    """Every text below a key ``queue``: one too many costs nothing, one too few and a task waits for ever."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "queue" and isinstance(item, str):
                yield item
            else:
                yield from _queues(item)
    elif isinstance(value, list):
        for item in value:
            yield from _queues(item)


async def leave_nothing(backend: Backend, runs: Collection[str]) -> None:
    """Cancel those of these runs that have not ended, and say so."""
    for run in runs:
        try:
            detail = await backend.get("", run)
            if not detail.run.finished:
                await backend.cancel("", run, "Now", "the local session ended")
                note(f"run {detail.run.name}: was unfinished and is cancelled")
        except PartitaError as error:
            note(f"run {run}: may go on: {error.message}")
