"""The CRD files say of every field that has no effect in this version that it has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from partita.domain.manifest import shapes
from partita.domain.manifest.refusals import LATER
from partita.kube import engine_object, mirror

CRDS = Path(__file__).parents[2] / "crds"
MARK = "Not in this version: "
WHOLE = ("spec.finally.", "spec.subflows[]")
"""They repeat the fields of ``spec.nodes[]``, by the same YAML anchors: what is inside is not looked at again."""

Schema = dict[str, Any]


def _spec(file: str) -> Schema:
    crd = yaml.safe_load((CRDS / f"{file}.yaml").read_text("utf-8"))
    schema: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def _fields(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child.get("description", "")
        yield from _fields(child, f"{path}.{name}")
    if "items" in schema:
        yield from _fields(schema["items"], f"{path}[]")


def _marked(file: str) -> dict[str, str]:
    fields = _fields(_spec(file), "spec")
    return {path: text for path, text in fields if text.startswith(MARK) and not path.startswith(WHOLE)}


def _expected(prefixes: dict[shapes.Shape, str]) -> dict[str, str]:
    return {f"{prefixes[shape]}.{name}": hint for (shape, name), hint in LATER.items() if shape in prefixes}


def _agrees(file: str, prefixes: dict[shapes.Shape, str]) -> None:
    marked, expected = _marked(file), _expected(prefixes)
    assert set(marked) == set(expected)
    for path, hint in expected.items():
        assert marked[path].startswith(f"{MARK}{hint}. "), path


def test_fields_of_definitions() -> None:
    _agrees("workflowdefinitions", {shapes.SPEC: "spec", shapes.NODE: "spec.nodes[]"})


def test_fields_of_runs() -> None:
    _agrees("workflowruns", {shapes.RUN: "spec"})
    assert {f"spec.{name}" for name in mirror.UNSUPPORTED} <= set(_marked("workflowruns"))


def test_fields_of_the_engine() -> None:
    assert set(_marked("workflowengines")) == {f"spec.{name}" for name in engine_object.UNSUPPORTED}


def test_every_later_field_belongs_to_a_kind_of_object() -> None:
    assert {shape for shape, _ in LATER} == {shapes.SPEC, shapes.NODE, shapes.RUN}
