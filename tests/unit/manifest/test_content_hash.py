"""The hash of a version: the same for the same meaning, another for another, and never changed by a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from partita.domain.manifest import parse_definition
from tests.unit.manifest.build import definition, task

STORED = [*yaml.safe_load_all((Path(__file__).parent / "stored.yaml").read_text(encoding="utf-8"))]


def _hash(*nodes: Any, **spec: Any) -> str:
    return definition(*nodes, **spec).content_hash


def test_the_hash_is_of_the_meaning() -> None:
    base = _hash(task("a"), task("b", dependsOn=["a"], timeout="1m", input={"x": 1, "y": 2}))
    assert base == _hash(
        task("a", join="all", when=None, retry=[], cancelRemaining=False, onFailure="fail"),
        {
            "timeout": "60s",
            "input": {"y": 2, "z": None, "x": 1},
            "task": {"queue": "default", "type": "t"},
            "dependsOn": ["a"],
            "name": "b",
        },
        failFast=True,
        config={},
        description="",
    )
    assert len(base) == 64


@pytest.mark.parametrize(
    "changed",
    [
        [task("a"), task("b")],
        [task("b"), task("a")],
        [task("a"), task("b", input={"x": 1})],
        [task("a"), task("b", timeout="2m")],
        [task("a"), task("b", retry=[{}])],
        [task("a"), task("b", retry=[{"maxRetries": 1}])],
        [task("a"), task("b", when="${true}")],
        [task("a"), task("b", priority=0)],
        [task("a"), task("b", onFailure="continue")],
        [task("a"), {"name": "b", "compute": {}}],
        [task("a"), {"name": "b", "compute": {"x": True}}],
        [task("a"), {"name": "b", "compute": {"x": 1}}],
        [task("a"), {"name": "b", "wait": {"duration": "1s"}}],
        [task("a"), {"name": "b", "waitForEvent": {}}],
    ],
)
def test_the_hash_differs_where_the_meaning_does(changed: list[dict[str, Any]]) -> None:
    base = [task("a"), task("b", dependsOn=["a"])]
    assert _hash(*changed) != _hash(*base)
    assert _hash(*base, failFast=False) != _hash(*base) != _hash(*base, config={"a": 1})


def test_the_hash_does_not_change_between_releases() -> None:
    assert _hash(task("a")) == "e67a008a8c1ec3bfdefaabfa534ae2fcc6c4612eb198df8c77fae5a50606f466"


@pytest.mark.parametrize("stored", STORED, ids=lambda document: str(document["metadata"]["name"]))
def test_what_was_stored_keeps_its_hash(stored: dict[str, Any]) -> None:
    found, listed = parse_definition(stored)
    assert listed == ()
    assert found is not None
    assert found.content_hash == stored["metadata"]["annotations"]["hash"]


INNER = {"name": "s", "nodes": [task("p"), task("q")]}
FINAL = {"nodes": [task("z"), task("y")]}
UNDO = {"task": {"type": "u"}}


def spec(*nodes: dict[str, Any], inner: Any = None, final: Any = None, **more: Any) -> dict[str, Any]:
    """A spec that uses everything new, with changes."""
    first = {"name": "a", "workflow": {"subflow": "s"}, **(nodes[0] if nodes else {})}
    return {
        "nodes": [first, *nodes[1:]],
        "subflows": [{**INNER, **(inner or {})}],
        "finally": {**FINAL, **(final or {})},
        **more,
    }


CHANGES = [
    spec(),
    spec({"workflow": {"subflow": "s", "detach": True}}),
    spec({"workflow": {"name": "s"}}),
    spec({"workflow": {"name": "s", "version": 1}}),
    spec({"workflow": {"name": "s", "version": 2}}),
    spec({"workflow": None, "task": {"type": "t"}}),
    spec({"workflow": None, "fail": {"type": "x"}}),
    spec({"workflow": None, "fail": {"type": "y"}}),
    spec({"workflow": None, "fail": {"type": "x", "message": "m"}}),
    spec({"workflow": None, "succeed": {}}),
    spec({"workflow": None, "succeed": {"output": {}}}),
    spec({"workflow": None, "succeed": {"output": {"x": 1}}}),
    *(
        spec({"forEach": {"items": [1, 2], **loop}})
        for loop in (
            {},
            {"items": [2, 1]},
            {"as": "line"},
            {"maxParallel": 99},
            {"maxFailures": 0},
            {"maxFailures": "0%"},
            {"joinCount": 1},
            {"cancelRemaining": True},
        )
    ),
    *(
        spec({"repeat": loop})
        for loop in (
            {"until": "${output.x}"},
            {"while": "${output.x}"},
            {"until": "${output.x}", "delay": "1s"},
            {"until": "${output.x}", "maxIterations": 2},
            {"until": "${output.x}", "collect": "${output}"},
        )
    ),
    spec({"undo": UNDO}),
    spec({"undo": {"task": {"type": "v"}}}),
    spec({"undo": {"task": {"type": "u", "queue": "q"}}}),
    spec({"undo": {**UNDO, "input": {"x": "${output.x}"}}}),
    spec({"undo": UNDO}, defaults={"timeout": "1s"}, inner={"nodes": [{"name": "p", "compute": {}}]},
         final={"nodes": [{"name": "z", "compute": {}}]}),
    spec({"undo": UNDO}, defaults={"retry": [{}]}, inner={"nodes": [{"name": "p", "compute": {}}]},
         final={"nodes": [{"name": "z", "compute": {}}]}),
    spec(inner={"nodes": [task("q"), task("p")]}),
    spec(inner={"nodes": [task("p"), task("q", dependsOn=["p"])]}),
    spec(inner={"output": {"x": 1}}),
    spec(inner={"timeout": "1h"}),
    spec(inner={"failFast": False}),
    spec(inner={"finally": {"nodes": [task("r")]}}),
    spec({"workflow": {"subflow": "t"}}, inner={"name": "t"}),
    spec(final={"nodes": [task("y"), task("z")]}),
    spec(final={"nodes": [task("z"), task("y", dependsOn=["z"])]}),
    spec(final={"timeout": "1m"}),
    {**spec(), "finally": None},
    {**spec(), "subflows": [INNER, {**INNER, "name": "t"}]},
    spec(config={"x": 1}),
]  # fmt: skip


def test_every_field_of_every_flow_counts() -> None:
    hashes = [_hash(*given.pop("nodes"), **given) for given in map(dict, CHANGES)]
    assert len(set(hashes)) == len(CHANGES)


def test_what_means_the_same_in_subflows_has_the_same_hash() -> None:
    def written(given: dict[str, Any]) -> str:
        return _hash(*given["nodes"], **{key: value for key, value in given.items() if key != "nodes"})

    base = spec({"forEach": {"items": [1]}, "undo": UNDO}, inner={"timeout": "1m"})
    same = spec(
        {
            "forEach": {"items": [1], "as": "item", "maxParallel": 100, "cancelRemaining": False},
            "undo": {"task": {"type": "u", "queue": "default"}, "input": None},
            "workflow": {"subflow": "s", "detach": False},
        },
        inner={"timeout": "60s", "failFast": True, "finally": None},
    )
    other = {"name": "t", "nodes": [task("p")]}
    assert written(base) == written(same)
    assert written({**base, "subflows": [*base["subflows"], other]}) == written(
        {**base, "subflows": [other, *base["subflows"]]}
    )


def test_the_hash_of_everything_new_does_not_change_between_releases() -> None:
    given = spec(
        {"forEach": {"items": "${input.xs}", "as": "x", "maxFailures": "10%"}, "undo": UNDO, "input": {"x": "${x}"}},
        task("b", repeat={"while": "${output.more}", "delay": "1s"}),
        {"name": "f", "when": "${nodes.b.output.bad}", "fail": {"type": "bad", "message": "${nodes.b.state}"}},
        {"name": "g", "succeed": {"output": {"x": 1}}, "when": "${input.done}"},
    )
    assert _hash(*given.pop("nodes"), **given) == "9c9337e45039c56e39473c677be1af9c7ffceeb1f8f9bed76374c5ecd554853d"
