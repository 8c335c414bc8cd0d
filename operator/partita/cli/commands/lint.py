"""``partita lint``: every problem of a manifest, found by the code that the operator runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from partita.cli import options
from partita.cli.documents import read_documents
from partita.cli.exits import Exit
from partita.cli.output import Format, print_json, stdout
from partita.domain.errors import InvalidError, PartitaError, Problem
from partita.domain.manifest import parse_definition, parse_run, prepare_input
from partita.domain.model import Definition
from partita.domain.payload import Json


@dataclass(frozen=True, slots=True)
class Finding:
    """The problems of one document; none when it is good."""

    file: str
    document: int
    kind: str
    name: str
    problems: tuple[Problem, ...]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(lint)


def lint(
    files: Annotated[list[Path], typer.Argument(help="YAML files; - reads standard input.")],
    output: options.Output = Format.TABLE,
) -> None:
    """Check manifests without a cluster or a database, and list every problem with its place."""
    findings = [finding for file in files for finding in check_file(file)]
    if output is Format.JSON:
        print_json(findings)
    else:
        for finding in findings:
            _print(finding)
    if any(finding.problems for finding in findings):
        raise typer.Exit(Exit.USAGE)


def check_file(file: Path) -> list[Finding]:
    """Check each document, and each run's input against its definition where the same file holds that too."""
    try:
        documents = read_documents(file)
    except InvalidError as error:
        return [Finding(str(file), 0, "", "", error.problems)]
    definitions: dict[str, Definition] = {}
    return [_check(str(file), number, document, definitions) for number, document in enumerate(documents, 1)]


def _check(file: str, number: int, document: Mapping[str, Json], known: dict[str, Definition]) -> Finding:
    kind = str(document.get("kind", ""))
    name = str((document.get("metadata") or {}).get("name", ""))
    problems: tuple[Problem, ...]
    if kind == "WorkflowDefinition":
        definition, problems = parse_definition(document)
        if definition is not None:
            known[definition.name] = definition
    elif kind == "WorkflowRun":
        problems = _check_run(document, known)
    elif kind == "WorkflowEngine":
        problems = ()
    else:
        problems = (Problem("kind", f"is {kind or 'missing'}; expected WorkflowDefinition or WorkflowRun"),)
    return Finding(file, number, kind, name, problems)


def _check_run(document: Mapping[str, Json], known: Mapping[str, Definition]) -> tuple[Problem, ...]:
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


def _print(finding: Finding) -> None:
    title = f"{finding.file}: document {finding.document}: {finding.kind} {finding.name}".rstrip()
    if not finding.problems:
        stdout.print(f"{title}: ok", markup=False, highlight=False)
    for problem in finding.problems:
        stdout.print(f"{title}: {problem}", markup=False, highlight=False)
