"""The engine against the reference, on one case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from partita.domain.manifest import parse_definition
from partita.domain.model import Definition
from tests.property.definitions import CATALOGUE
from tests.property.generator import Case
from tests.property.outcome import outcome_of
from tests.property.performance import Performance
from tests.property.realm import Realm
from tests.property.reference import Result, interpret

DEPTH = 4
"""Of children, in both."""
MORE_VARIANTS = 20
"""Orders that are tried before a difference is a disagreement."""


def parsed(spec: dict[str, Any], name: str = "example") -> Definition | None:
    """The definition of a spec; None if the parser refuses it."""
    definition, _ = parse_definition(
        {"apiVersion": "partita.dev/v1alpha1", "kind": "WorkflowDefinition", "metadata": {"name": name}, "spec": spec}
    )
    return definition


@cache
def catalogue() -> dict[str, dict[int, Definition]]:
    """Definitions that children may be of."""
    found: dict[str, dict[int, Definition]] = {}
    for name, versions in CATALOGUE.items():
        for version, spec in versions.items():
            definition = parsed(spec, name)
            assert definition is not None
            found.setdefault(name, {})[version] = definition
    return found


def expected(case: Case, variants: int = 3) -> Result | None:
    """What the reference says; None if the language leaves it open."""
    return interpret(case.spec, case.script, variants=variants, catalogue=CATALOGUE, child_depth=DEPTH)


def realm_of(definition: Definition, *, sliced: bool = False, bounds: Mapping[str, int] | None = None) -> Realm:
    """A realm for a definition."""
    realm = Realm(definition, catalogue=catalogue(), sliced=sliced, bounds=bounds)
    assert realm.limits.child_depth == DEPTH
    return realm


def differences(found: Result, wanted: Result) -> list[str]:
    """Where the engine and the reference disagree, one line each."""
    lines: list[str] = []
    _walk("", _plain(found), _plain(wanted), lines)
    return lines


def _plain(result: Result) -> Any:
    runs = {json.dumps(path): _ended_early(run) for path, run in sorted(result.runs.items())}
    return {"runs": runs, "signals": {str(key): taken for key, taken in result.signals.items()}}


def _ended_early(run: dict[str, Any]) -> dict[str, Any]:
    """In a run that did not finish its nodes nobody promised which of them were skipped before the others went."""
    if run["status"] == "Succeeded" and not run["cut"]:
        return run
    nodes = {
        name: {**node, "state": "Cancelled"} if node["state"] == "Skipped" and not node["stepped"] else node
        for name, node in run["nodes"].items()
    }
    return {**run, "nodes": nodes}


def _walk(path: str, found: Any, wanted: Any, lines: list[str]) -> None:
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted({*found, *wanted}, key=str):
            _walk(f"{path}/{key}", found.get(key, "absent"), wanted.get(key, "absent"), lines)
    elif found != wanted:
        lines.append(f"{path}: engine {found!r}, reference {wanted!r}")


def disagreement(case: Case, *, sliced: bool = False, bounds: Mapping[str, int] | None = None) -> list[str] | None:
    """Where the engine and the reference disagree; None if the case says nothing (refused, or left open)."""
    definition = parsed(case.spec)
    if definition is None:
        return None
    wanted = expected(case)
    if wanted is None:
        return None
    performance = Performance(realm_of(definition, sliced=sliced, bounds=bounds), case.script)
    try:
        performance.play()
    except (AssertionError, KeyError, AttributeError, TypeError, ValueError) as error:
        return [f"engine breaks: {type(error).__name__}: {error}"]
    lines = differences(outcome_of(performance.realm), wanted)
    return None if lines and expected(case, variants=MORE_VARIANTS) is None else lines
