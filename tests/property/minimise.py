"""Makes a failing case small: ``python -m tests.property.minimise SEED [feature …]`` prints it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tests.property.comparison import disagreement
from tests.property.generator import Case, generate
from tests.property.reference import Script

Fails = Callable[[Case], bool]
_FIELDS = ("nodes", "subflows", "finally")


def minimise(case: Case, fails: Fails) -> Case:
    """The smallest case found that still fails."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(case):
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    for number in range(len(case.script.acts) - 2):
        acts = case.script.acts[:number] + case.script.acts[number + 1 :]
        yield Case(case.spec, Script(case.script.input, case.script.outcomes, acts))
    for path in _places(case.spec):
        spec = copy.deepcopy(case.spec)
        owner: Any = spec
        for step in path[:-1]:
            owner = owner[step]
        if isinstance(owner, list) and len(owner) == 1 and path[-2] == "nodes":
            continue
        gone = owner.pop(path[-1])
        if isinstance(gone, dict) and "name" in gone and path[-2] == "nodes":
            _forget(spec, gone["name"])
        yield Case(spec, case.script)
    for name, plan in case.script.outcomes.items():
        if len(plan) > 1:
            for one in plan:
                yield Case(
                    case.spec, Script(case.script.input, {**case.script.outcomes, name: (one,)}, case.script.acts)
                )


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members: list[Any] = (
        [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    )
    for key in members:
        yield (*path, key)
    for key in members:
        yield from _places(value[key], (*path, key))


def _forget(value: Any, name: str) -> None:
    if isinstance(value, dict):
        for member in value.values():
            _forget(member, name)
    elif isinstance(value, list):
        if name in value:
            value.remove(name)
        for member in value:
            _forget(member, name)


def _kind(lines: list[str] | None) -> str:
    if not lines:
        return ""
    return lines[0].split(":")[2].strip()[:40] if lines[0].startswith("engine breaks") else "differs"


def shown(case: Case) -> str:
    """A case, for people."""
    names = {node for node in case.script.outcomes if node.removesuffix("~undo") in yaml.safe_dump(case.spec)}
    plans = {name: [list(one) for one in plan] for name, plan in case.script.outcomes.items() if name in names}
    text = yaml.safe_dump(case.spec, default_flow_style=None, width=160, sort_keys=False)
    return f"{text}outcomes: {plans}\nacts: {[list(act) for act in case.script.acts[:-2]]}"


def main() -> None:
    """Print the smallest case that fails as the seed's does."""
    features = frozenset(sys.argv[2:]) or None
    case = generate(int(sys.argv[1]), features)
    sliced = int(sys.argv[1]) % 2 == 1
    kind = _kind(disagreement(case, sliced=sliced))
    if not kind:
        print("agrees")
        return
    small = minimise(case, lambda one: _kind(disagreement(one, sliced=sliced)) == kind)
    print(shown(small))
    print("\n".join(disagreement(small, sliced=sliced) or ()))


if __name__ == "__main__":
    main()
