"""What manifests match is what workers report: one form of error types."""

from __future__ import annotations

import pytest

from partita.domain import error_types
from partita.worker.failures import TaskError, type_of
from tests.unit.manifest.build import problems, task

NAMES = ["CardDeclined", "HTTPError", "ValueError", "A", "TimeOut2", "E7", "OverBudget", "X" * 60, "lower", "_Hidden"]


@pytest.mark.parametrize("name", NAMES)
def test_the_type_of_an_exception_can_be_matched(name: str) -> None:
    reported = type_of(type(name, (Exception,), {}))
    assert problems(task("a", onError=[{"match": [reported], "next": []}])) == []


@pytest.mark.parametrize("name", ["CardDeclined", "HTTPError", "OverBudget"])
def test_the_hint_for_a_class_is_its_type(name: str) -> None:
    assert error_types.type_named(name) == type_of(type(name, (Exception,), {}))


@pytest.mark.parametrize("text", ["", "7up", "ä", "X" * 200])
def test_there_is_no_hint_for_what_is_no_class(text: str) -> None:
    assert error_types.type_named(text) == ""


@pytest.mark.parametrize("name", ["CardDeclined", "card-declined", "9lives", "card.declined", "c" * 64])
def test_what_workers_refuse_cannot_be_matched(name: str) -> None:
    with pytest.raises(TypeError):
        type("Own", (TaskError,), {"error_type": name})
    assert problems(task("a", onError=[{"match": [name], "next": []}])) != []


@pytest.mark.parametrize("entry", error_types.RESERVED, ids=lambda entry: str(entry.name))
def test_reserved_types_can_be_matched_and_not_given(entry: error_types.ErrorType) -> None:
    name = entry.name.replace("*", "404")
    assert problems(task("a", retry=[{"match": [name]}])) == []
    assert problems({"name": "f", "fail": {"type": name}}) == [
        f"spec.nodes[0].fail.type: {name!r} is given by the engine only; expected a type of your own, such as refused"
    ]
