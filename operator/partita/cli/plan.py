"""What a manifest is about to change, checked as a whole before the first change of it.

Invariant: definitions come first, every run's definition is found (in the file or where it is deployed) and its input
fits, before anything is written. Trade-off: what changes between the checks and the writes is found by the writes
alone, and then ``PartlySubmittedError`` says what was done already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from partita.cli.backend import PartlySubmittedError, Submitted
from partita.cli.checks import checked
from partita.domain.errors import DefinitionNotFoundError, InvalidError, NotFoundError, PartitaError, Problem
from partita.domain.manifest import RunManifest, parse_definition, parse_run, prepare_input
from partita.domain.model import Definition
from partita.domain.payload import Json, Payload, encode

Lookup: TypeAlias = Callable[[str, str, int | None], Awaitable[Definition | None]]
"""Namespace, name and version of a definition that is not in the file: what it says, None where that cannot be known.

Raises NotFoundError."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One document to apply."""

    body: dict[str, Any]
    run: RunManifest | None = None
    """Of a WorkflowRun."""
    input: Payload | None = None
    """Of a WorkflowRun, with defaults, where its definition is known."""

    @property
    def namespace(self) -> str:
        """Where it belongs."""
        return str(self.body["metadata"]["namespace"])


async def planned(namespace: str, documents: Sequence[Mapping[str, Json]], lookup: Lookup) -> list[Planned]:
    """The documents in the order in which they are applied.

    Raises InvalidError with all problems, and DefinitionNotFoundError with every definition that is missing.
    """
    bodies = sorted(checked(namespace, documents), key=lambda body: body["kind"] != "WorkflowDefinition")
    known = {
        (body["metadata"]["namespace"], definition.name): definition
        for body in bodies
        if (definition := _definition(body)) is not None
    }
    plan: list[Planned] = []
    missing: list[NotFoundError] = []
    problems: list[Problem] = []
    for body in bodies:
        try:
            plan.append(await _planned(body, known, lookup))
        except NotFoundError as error:
            missing.append(error)
        except InvalidError as error:
            title = f"WorkflowRun {body['metadata'].get('name', '')}".rstrip()
            problems += [Problem(f"{title}: {problem.path}", problem.message) for problem in error.problems]
    if problems:
        raise InvalidError("manifest", tuple(problems), hint="partita lint FILE")
    if missing:
        raise DefinitionNotFoundError(
            "; ".join(dict.fromkeys(error.message for error in missing)), hint=missing[0].hint
        )
    _refuse_doubles(plan)
    return plan


def _definition(body: Mapping[str, Any]) -> Definition | None:
    return parse_definition(body)[0] if body["kind"] == "WorkflowDefinition" else None


async def _planned(body: dict[str, Any], known: Mapping[tuple[str, str], Definition], lookup: Lookup) -> Planned:
    if body["kind"] == "WorkflowDefinition":
        return Planned(body)
    run, problems = parse_run(body)
    if run is None:
        raise InvalidError("manifest", problems)
    place = (run.namespace, run.definition)
    found = known[place] if place in known else await lookup(*place, run.version)
    return Planned(body, run, None if found is None else prepare_input(found, run.input))


def _refuse_doubles(plan: Iterable[Planned]) -> None:
    """Refuse two runs of one id, and one key for runs that differ."""
    runs = [(each.namespace, each.run) for each in plan if each.run is not None]
    ids = Counter(run.run_id for _, run in runs if run.run_id is not None)
    orders: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for namespace, run in runs:
        if run.idempotency_key is not None:
            order = (run.definition, encode(run.input))
            orders.setdefault((namespace, run.idempotency_key), set()).add(order)
    problems = [
        Problem("spec.runId", f"{found} is the id of {count} runs") for found, count in ids.items() if count > 1
    ]
    problems += [
        Problem("spec.idempotencyKey", f"{key!r} belongs to runs that differ; expected a key for each")
        for (_, key), different in orders.items()
        if len(different) > 1
    ]
    if problems:
        raise InvalidError("manifest", tuple(problems), hint="partita lint FILE")


async def in_order(plan: Sequence[Planned], put: Callable[[Planned], Awaitable[Submitted]]) -> list[Submitted]:
    """Apply one document after the other; raises PartlySubmittedError when one fails after others were applied."""
    done: list[Submitted] = []
    for each in plan:
        try:
            done.append(await put(each))
        except PartitaError as error:
            if not done:
                raise
            raise PartlySubmittedError(tuple(done), error) from error
    return done
