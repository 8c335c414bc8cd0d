"""WorkflowRuns and their inputs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from partita.domain.errors import InvalidInputError
from partita.domain.manifest import CancelControl, RunManifest, SignalControl, parse_run, prepare_input
from tests.unit.manifest.build import cases, definition, task

RUN_ID = "018f3a5c-0000-7000-8000-000000000001"


def run(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "partita.dev/v1alpha1",
        "kind": "WorkflowRun",
        "metadata": {"name": "r", "namespace": "shop"},
        "spec": {"definitionRef": {"name": "order"}, **spec},
    }


def test_a_run_with_nothing() -> None:
    assert parse_run(run()) == (RunManifest(name="r", namespace="shop", definition="order"), ())


def test_a_run_with_everything() -> None:
    found, problems = parse_run(
        run(
            definitionRef={"name": "order", "version": 3},
            input={"a": 1},
            runId=RUN_ID,
            idempotencyKey="key",
            startAt="2030-01-01T06:00:00+02:00",
            priority=-1,
            tags=["nightly"],
            attributes={"team": "billing", "empty": ""},
            timeout="2h",
            ttlSecondsAfterFinished=0,
            suspend=True,
            cancel={"mode": "Now", "reason": "because"},
            cancelNodes=["pack", "ship"],
            signals=[{"id": "a1", "name": "approval", "payload": {"by": "me"}}, {"id": "a2", "name": "other"}],
            hold=[],
            retry=0,
        )
    )
    assert problems == ()
    assert found == RunManifest(
        name="r",
        namespace="shop",
        definition="order",
        version=3,
        input={"a": 1},
        run_id=UUID(RUN_ID),
        idempotency_key="key",
        start_at=datetime(2030, 1, 1, 4, tzinfo=UTC),
        priority=-1,
        tags=("nightly",),
        attributes={"team": "billing", "empty": ""},
        timeout_ms=7_200_000,
        ttl_seconds_after_finished=0,
        suspend=True,
        cancel=CancelControl("Now", "because"),
        cancel_nodes=("pack", "ship"),
        signals=(SignalControl("a1", "approval", {"by": "me"}), SignalControl("a2", "other", {})),
    )


def test_an_empty_cancel_is_a_graceful_one() -> None:
    found, _ = parse_run(run(cancel={}))
    assert found is not None
    assert found.cancel == CancelControl("Graceful", "")


@pytest.mark.parametrize(("spec", "expected"), cases("runs", "spec"))
def test_a_run_with_a_mistake(spec: dict[str, Any], expected: list[str]) -> None:
    found, problems = parse_run(run(**spec))
    assert found is None
    assert [str(problem) for problem in problems] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "x" * 2_097_152}, "spec.input: has 2,097,160 bytes as JSON; expected at most 1,048,576"),
        ({"a": {"b": ["x\0"]}}, "spec.input.a.b[0]: contains a NUL character, which PostgreSQL cannot store"),
    ],
)
def test_a_run_whose_input_cannot_be_stored(value: dict[str, Any], expected: str) -> None:
    found, problems = parse_run(run(input=value))
    assert found is None
    assert [str(problem) for problem in problems] == [expected]


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["sku"],
    "additionalProperties": False,
    "properties": {
        "sku": {"type": "string", "pattern": "^[a-z]+$"},
        "express": {"type": "boolean", "default": False},
        "lines": {
            "type": "array",
            "default": [{}],
            "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
        },
        "address": {"$ref": "#/$defs/address"},
    },
    "$defs": {"address": {"type": "object", "properties": {"country": {"default": "DE"}}}},
}


def test_defaults_are_filled_in_before_the_input_is_checked() -> None:
    given = {"sku": "violin", "address": {}}
    prepared = prepare_input(definition(task("a"), inputSchema=SCHEMA), given)
    assert prepared.value == {"sku": "violin", "address": {"country": "DE"}, "express": False, "lines": [{"n": 1}]}
    assert given == {"sku": "violin", "address": {}}


def test_every_violation_is_named_with_its_path() -> None:
    with pytest.raises(InvalidInputError) as caught:
        prepare_input(definition(task("a"), inputSchema=SCHEMA), {"lines": [{"n": "x"}], "colour": 1, "sku": "V"})
    assert [str(problem) for problem in caught.value.problems] == [
        "spec.input.lines[0].n: 'x' is not of type integer",
        "spec.input: unknown field 'colour'; expected one of address, express, lines, sku",
        "spec.input.sku: 'V' does not match '^[a-z]+$'",
    ]
    assert caught.value.reason == "InvalidInput"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "spec.input: is a list; expected an object"),
        ({"a": "x\0"}, "spec.input.a: contains a NUL character, which PostgreSQL cannot store"),
        ({"a": "x" * 1_048_576}, "spec.input: has 1,048,584 bytes as JSON; expected at most 1,048,576"),
    ],
)
def test_inputs_that_cannot_be_stored(value: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        prepare_input(definition(task("a")), value)
    assert [str(problem) for problem in caught.value.problems] == [message]


def test_an_absent_input_is_an_empty_object() -> None:
    assert prepare_input(definition(task("a")), None).value == {}
