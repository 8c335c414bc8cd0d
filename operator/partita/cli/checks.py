"""Checking manifests on this machine, by the code that the operator runs: for ``lint``, and before ``submit``.

Invariant: every problem of every document is found, and nothing is applied while there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partita.cli.documents import read_documents
from partita.domain.errors import InvalidError, PartitaError, Problem
from partita.domain.manifest import parse_definition, parse_run, prepare_input
from partita.domain.model import Definition
from partita.domain.names import OBJECT
from partita.domain.payload import Json
from partita.domain.places import shortened

SUBMITTED = ("WorkflowDefinition", "WorkflowRun")


@dataclass(frozen=True, slots=True)
class Finding:
    """The problems of one document; none when it is good."""

    file: str
    document: int
    kind: str
    name: str
    problems: tuple[Problem, ...]


def check_file(file: Path) -> list[Finding]:
    """Check each document, and each run's input against its definition where the same file holds that too."""
    try:
        documents = read_documents(file)
    except InvalidError as error:
        return [Finding(str(file), 0, "", "", error.problems)]
    known = _definitions(documents)
    return [
        Finding(str(file), number, _kind(document), _name(document), _problems(document, known))
        for number, document in enumerate(documents, 1)
    ]


def checked(namespace: str, documents: Sequence[Mapping[str, Json]]) -> list[dict[str, Any]]:
    """The documents in the namespaces that they name, else in this one; raises InvalidError with all problems."""
    found: list[Problem] = []
    known = _definitions(documents)
    for document in documents:
        title = f"{_kind(document)} {_name(document)}".rstrip()
        kind = _kind(document)
        problems = _problems(document, known) if kind in SUBMITTED else (_unknown_kind(kind),)
        found += [Problem(f"{title}: {problem.path}", problem.message) for problem in problems]
    if found:
        raise InvalidError("manifest", tuple(found), hint="partita lint FILE")
    return [{**document, "metadata": {"namespace": namespace, **document["metadata"]}} for document in documents]


def _definitions(documents: Sequence[Mapping[str, Any]]) -> dict[str, Definition]:
    """The good definitions among documents, by name."""
    parsed = [parse_definition(each)[0] for each in documents if _kind(each) == "WorkflowDefinition"]
    return {definition.name: definition for definition in parsed if definition is not None}


def _problems(document: Mapping[str, Any], known: Mapping[str, Definition]) -> tuple[Problem, ...]:
    """What is wrong with a document; the input of a run is checked where its definition is known."""
    kind = _kind(document)
    if kind == "WorkflowDefinition":
        return parse_definition(document)[1]
    if kind == "WorkflowRun":
        return _run_problems(document, known)
    return () if kind == "WorkflowEngine" else (_unknown_kind(kind),)


def _run_problems(document: Mapping[str, Json], known: Mapping[str, Definition]) -> tuple[Problem, ...]:
    run, problems = parse_run(document)
    definition = known.get(run.definition) if run is not None else None
    if run is None or definition is None:
        return problems
    try:
        prepare_input(definition, run.input)
    except InvalidError as error:
        return (*problems, *error.problems)
    except PartitaError as error:
        return (*problems, Problem("spec.input", str(error)))
    return problems


def _unknown_kind(kind: str) -> Problem:
    return Problem("kind", f"is {kind or 'missing'}; expected {' or '.join(SUBMITTED)}")


def _kind(document: Mapping[str, Any]) -> str:
    return shortened(str(document.get("kind", "")))


def _name(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    return shortened(str(metadata.get("name", "")), OBJECT.longest) if isinstance(metadata, dict) else ""
