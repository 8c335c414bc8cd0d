"""What is generated is current, every setting reaches the processes, and ci/ tries every value."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
import yaml

from partita.environment import variable
from partita.settings import Settings
from tests.chart.helm import CHART, CI, ROOT, Helm, Object, of_kind, one, variables

SCRIPTS = ROOT / "scripts"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
ELSEWHERE = {
    "PARTITA_DATABASE_URL", "PARTITA_DATABASE_MIGRATIONS_URL", "PARTITA_DATABASE_READ_URL", "PARTITA_DATABASE_SCHEMA",
    "PARTITA_DATABASE_POOLED", "PARTITA_DATABASE_PLANNER", "PARTITA_WORKER_QUEUES", "PARTITA_WORKER_NAMESPACES",
    "PARTITA_WORKER_SLOTS", "PARTITA_WORKER_HEALTH_BIND", "PARTITA_OPERATOR_NAMESPACE",
    "PARTITA_OPERATOR_WATCH_NAMESPACES", "PARTITA_OPERATOR_CLUSTER_UID", "PARTITA_OPERATOR_ENGINE_SPEC",
}  # fmt: skip
"""Settings that have values of their own in the chart."""


def test_generated_files_are_current() -> None:
    command = [sys.executable, str(SCRIPTS / "chart_files.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_crds_are_those_of_the_checkout(helm: Helm) -> None:
    found = {each["metadata"]["name"]: each["spec"] for each in of_kind(helm.trial(), "CustomResourceDefinition")}
    sources = [yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / "crds").glob("*.yaml")]
    assert found == {each["metadata"]["name"]: each["spec"] for each in sources}


def test_the_crds_are_kept_unless_told_otherwise(helm: Helm) -> None:
    mark = {"helm.sh/resource-policy": "keep"}
    kept = [each["metadata"]["annotations"] for each in of_kind(helm.trial(), "CustomResourceDefinition")]
    assert kept == [mark] * 3
    left = of_kind(helm.trial("--set", "crds.keep=false"), "CustomResourceDefinition")
    assert [each["metadata"].get("annotations") for each in left] == [None] * 3
    assert of_kind(helm.trial("--set", "crds.install=false"), "CustomResourceDefinition") == []


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _settings() -> Iterator[tuple[str, str, str, Any]]:
    """(section, field, variable, a value within bounds) of every setting that is passed as such."""
    for section, kind in get_type_hints(Settings).items():
        for item in fields(kind):
            name = variable(section, item.name)
            if name not in ELSEWHERE:
                value: Any = item.metadata.get("high", item.default or ("a", "b"))
                yield section, item.name, name, value


def test_every_setting_can_be_given_and_reaches_the_operator(helm: Helm) -> None:
    given: dict[str, dict[str, Any]] = {}
    expected = {}
    for section, field, name, value in _settings():
        given.setdefault(_camel(section), {})[_camel(field)] = list(value) if isinstance(value, tuple) else value
        expected[name] = ",".join(value) if isinstance(value, tuple) else str(value)
    rendered = helm.trial("--set-json", f"settings={json.dumps(given)}")
    (operator,) = one(rendered, "Deployment", "partita-operator")["spec"]["template"]["spec"]["containers"]
    found = variables(operator)
    assert {name: found.get(name) for name in expected} == expected


def test_settings_that_the_chart_sets_itself_are_refused_below_settings() -> None:
    known = SCHEMA["definitions"]["settings"]["properties"]
    everything = {
        variable(section, item.name) for section, kind in get_type_hints(Settings).items() for item in fields(kind)
    }
    passed = {name for section, field, name, _ in _settings() if _camel(field) in known[_camel(section)]["properties"]}
    assert everything - passed == ELSEWHERE & everything
    assert sum(len(section["properties"]) for section in known.values()) == len(passed)


def test_values_satisfy_their_own_schema_and_hold_every_default() -> None:
    def check(schema: Object, values: Any, path: str) -> Iterator[str]:
        for key, below in schema.get("properties", {}).items():
            if "default" in below and values.get(key) != below["default"]:
                yield f"{path}.{key}"
            if isinstance(values.get(key), dict):
                yield from check(below, values[key], f"{path}.{key}")

    assert list(check(SCHEMA, VALUES, "")) == []


def test_no_object_of_the_chart_takes_unknown_keys() -> None:
    def loose(schema: Object, path: str) -> Iterator[str]:
        if "properties" in schema and schema.get("additionalProperties") is not False:
            yield path
        for key, below in schema.get("properties", {}).items():
            assert below.get("description") or "$ref" in below, f"{path}.{key} has no description"
            yield from loose(below, f"{path}.{key}")
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from loose(schema[key], f"{path}[]")

    assert list(loose(SCHEMA, "")) == []
    assert list(loose(SCHEMA["definitions"]["settings"], "settings")) == []


def _paths(schema: Object, path: str) -> Iterator[str]:
    if "properties" not in schema:
        yield path
        return
    for key, below in schema["properties"].items():
        yield from _paths(below, f"{path}.{key}" if path else key)


def _given(values: Any, path: str = "") -> Iterator[str]:
    yield path
    for key, below in values.items() if isinstance(values, dict) else ():
        yield from _given(below, f"{path}.{key}" if path else key)


def test_ci_gives_every_value_once() -> None:
    given = {path for file in CI for path in _given(yaml.safe_load(file.read_text("utf-8")))}
    wanted = set(_paths({"properties": {k: v for k, v in SCHEMA["properties"].items() if k != "workerDefaults"}}, ""))
    workers = {path.partition(".")[2].partition(".")[2] for path in given if path.startswith("workers.")}
    of_workers = set(_paths(SCHEMA["properties"]["workers"]["additionalProperties"], ""))
    assert {path for path in wanted - given if path.split(".")[0] not in ("settings", "global")} == set()
    assert of_workers - workers == set()


@pytest.mark.parametrize("name", ["version", "appVersion"])
def test_versions_follow_the_project(name: str) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert f'version = "{chart[name]}"' in (ROOT / "pyproject.toml").read_text("utf-8")
