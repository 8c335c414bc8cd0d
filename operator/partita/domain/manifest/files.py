"""Reads the documents of a file.

Invariant: a key that is refused hides nothing: what else is wrong with the documents is told with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from partita.domain.errors import InvalidError, Problem
from partita.domain.manifest import definition, run
from partita.domain.manifest.documents import read_documents
from partita.domain.manifest.limits import PROBLEMS
from partita.domain.payload import Json


def load_documents(text: str) -> tuple[dict[str, Json], ...]:
    """The objects of a file, empty documents left out. Raises InvalidError that names line and problem."""
    documents, keys = read_documents(text)
    if keys:
        places = [f"document {number}: " for number in range(1, len(documents) + 1)] if len(documents) > 1 else [""]
        others = [problem for found, place in zip(documents, places, strict=True) for problem in _others(found, place)]
        raise InvalidError("manifest", (*keys, *others)[:PROBLEMS])
    return documents


def _others(document: dict[str, Any], place: str) -> Iterator[Problem]:
    """What is wrong with a document besides; one of another kind is not looked at."""
    problems: tuple[Problem, ...] = ()
    if document.get("kind") == definition.KIND:
        problems = definition.parse_definition(document)[1]
    elif document.get("kind") == run.KIND:
        problems = run.parse_run(document)[1]
    for problem in problems:
        yield Problem(f"{place}{problem.path}", problem.message)
