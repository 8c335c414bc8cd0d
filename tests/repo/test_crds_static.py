"""The CRD files, read without a cluster: every field is described, bounded and structural, and rules are complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from partita.domain import durations
from partita.domain.expressions.parser import RESERVED
from partita.domain.model import Join
from partita.domain.state.rows import NodeState, RunStatus

CRDS = Path(__file__).parents[2] / "crds"
FILES = sorted(CRDS.glob("*.yaml"))
ANNOTATION_LIMIT = 256 * 1024
"""Bytes that client-side `kubectl apply` may store in its annotation."""

Schema = dict[str, Any]

DURATION = "^([0-9]+(ms|s|m|h|d))+$"
IDENTIFIER = "^[a-z][A-Za-z0-9_]*$"
PATTERNS = {
    DURATION: "duration",
    r"^(([0-9]+(ms|s|m|h|d))+|\$\{[\s\S]+\})$": "duration or one expression",
    IDENTIFIER: "identifier",
    "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$": "name of an object",
    "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$": "queue",
    "^[A-Za-z0-9]([A-Za-z0-9_./-]*[A-Za-z0-9])?$": "task type",
    "^[a-z][a-z0-9_]*$": "error type",
    "^[A-Za-z][A-Za-z0-9]*$": "condition",
    "^[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?$": "signal id",
    "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$": "UUIDv7",
    r"^[^\x00-\x1F\x7F]+$": "one line",
    r"^[^\x00-\x1F\x7F]*$": "one line or nothing",
    r"^[^\x00-\x08\x0B\x0C\x0E-\x1F\x7F]*$": "text",
    "^[A-Za-z0-9_+/-]+$": "time zone",
    "^(100|[0-9]{1,2})%$": "percentage",
    r"^https?://[^\s]+$": "address",
    "^[A-Za-z0-9._-]+$": "key of a Secret",
}
"""Every pattern in use: one that is written many times is written the same each time."""


def _load(path: Path) -> Schema:
    crd: Schema = yaml.safe_load(path.read_text("utf-8"))
    return crd


def _version(path: Path) -> Schema:
    version: Schema = _load(path)["spec"]["versions"][0]
    return version


def _walk(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from _walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _walk(schema["additionalProperties"], f"{path}{{}}")


def _nodes(path: Path) -> list[tuple[str, Schema]]:
    return list(_walk(_version(path)["schema"]["openAPIV3Schema"], ""))


def _kind(path: Path) -> str:
    return path.stem


every_file = pytest.mark.parametrize("path", FILES, ids=_kind)


@every_file
def test_the_three_kinds_are_there(path: Path) -> None:
    assert [file.stem for file in FILES] == ["workflowdefinitions", "workflowengines", "workflowruns"]
    crd = _load(path)
    assert crd["metadata"]["name"] == f"{path.stem}.partita.dev"
    assert crd["spec"]["names"]["categories"] == ["partita"]
    assert _version(path)["subresources"] == {"status": {}}


@every_file
def test_fits_into_the_annotation_of_client_side_apply(path: Path) -> None:
    assert len(json.dumps(_load(path), separators=(",", ":")).encode()) < ANNOTATION_LIMIT
    assert len(path.read_text("utf-8").splitlines()) <= 500


@every_file
def test_every_field_is_described(path: Path) -> None:
    for place, schema in _nodes(path):
        if place.endswith(("[]", "{}")) and schema.get("type") != "object":
            continue  # kubectl explain shows no description of a list's or map's plain values
        if place == ".metadata":
            continue  # an API server refuses a description of its own type
        text = schema.get("description", "")
        assert text.endswith((".", "...")), f"{place}: no description, or no sentence"
        assert 12 <= len(text) <= 240, f"{place}: {len(text)} characters"
        assert "{{" not in text, f"{place}: a chart would read it as a template"


@every_file
def test_every_value_is_bounded(path: Path) -> None:
    for place, schema in _nodes(path):
        match schema.get("type"):
            case "string":
                assert "maxLength" in schema or "enum" in schema, place
            case "array":
                assert {"maxItems", "x-kubernetes-list-type"} <= set(schema), place
            case "integer":
                assert {"minimum", "format"} <= set(schema), place
                assert place.startswith(".status") or "maximum" in schema, place
            case "number":
                assert {"minimum", "maximum"} <= set(schema), place
            case "object" if "additionalProperties" in schema:
                assert "maxProperties" in schema, place


@every_file
def test_every_pattern_is_a_known_one(path: Path) -> None:
    for place, schema in _nodes(path):
        assert schema.get("pattern", DURATION) in PATTERNS, place
        if place.rpartition(".")[2] in {"initialDelay", "maxDelay", "maxElapsed", "ttl", "scheduleToStart"}:
            assert schema["pattern"] == DURATION, place


@every_file
def test_every_schema_is_structural(path: Path) -> None:
    for place, schema in _nodes(path):
        opaque = schema.get("x-kubernetes-preserve-unknown-fields", False)
        assert "type" in schema or opaque or schema.get("x-kubernetes-int-or-string"), place
        if schema.get("type") == "object" and place != ".metadata":
            inner = [key for key in ("properties", "additionalProperties") if key in schema]
            assert len(inner) == (0 if opaque else 1), f"{place}: fields would be dropped without a word"
            assert not opaque or schema["x-kubernetes-map-type"] == "atomic", place
        assert set(schema.get("required", [])) <= set(schema.get("properties", {})), place
        keys = schema.get("x-kubernetes-list-map-keys", [])
        assert set(keys) <= set(schema.get("items", {}).get("required", [])), place


@every_file
def test_every_rule_says_what_was_expected(path: Path) -> None:
    for place, schema in _nodes(path):
        rules = schema.get("x-kubernetes-validations", [])
        assert not (rules and ".subflows[]" in place), f"{place}: too costly for the budget of a CRD"
        for rule in rules:
            assert "expected" in rule["message"], f"{place}: {rule['message']}"


@every_file
def test_only_signals_have_a_default(path: Path) -> None:
    defaults = [place for place, schema in _nodes(path) if "default" in schema]
    assert defaults == ([".spec.signals"] if path.stem == "workflowruns" else [])


@every_file
def test_conditions_look_the_same_in_every_kind(path: Path) -> None:
    def shape(file: Path) -> Schema:
        fields = dict(_nodes(file))[".status.conditions[]"]
        return {name: {**field, "description": ""} for name, field in fields["properties"].items()}

    assert shape(path) == shape(FILES[0])


def test_every_field_of_a_run_is_fixed_or_a_control() -> None:
    spec = dict(_nodes(CRDS / "workflowruns.yaml"))[".spec"]
    rules = spec["x-kubernetes-validations"]
    fixed = {rule["fieldPath"][1:] for rule in rules if "fixed once the run exists" in rule["message"]}
    changing = {"ttlSecondsAfterFinished", "suspend", "hold", "cancel", "cancelNodes", "retry", "signals"}
    assert fixed | changing == set(spec["properties"])
    assert not fixed & changing


def test_the_crds_and_the_engine_agree() -> None:
    runs, definitions = (dict(_nodes(CRDS / f"{name}.yaml")) for name in ("workflowruns", "workflowdefinitions"))
    assert runs[".status.phase"]["enum"] == [str(status) for status in RunStatus]
    assert set(runs[".status.nodes[].state"]["enum"]) == {"Running", *map(str, NodeState)}
    assert {*definitions[".spec.nodes[].join"]["enum"], "count"} == {str(join) for join in Join}
    assert durations.PATTERN == DURATION
    rules = definitions[".spec.nodes[]"]["x-kubernetes-validations"]
    refused = next(rule["rule"] for rule in rules if "word of the expression language" in rule["message"])
    assert set(re.findall('"([a-z]+)"', refused)) == RESERVED
