"""How inputs reach functions."""

# ruff: noqa: A002 - input and type are the words of the SDK

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from partita.worker import TaskContext
from partita.worker.binding import InvalidTaskInputError, bind
from tests.worker.support import claimed


@pytest.fixture
def context() -> TaskContext:
    return TaskContext(claimed(input={"customer": "ann", "amount": 3}))


def test_keys_become_keyword_arguments(context: TaskContext) -> None:
    def charge(ctx: TaskContext, customer: str, amount: int = 1) -> None: ...

    arguments = bind(charge).arguments(context, {"customer": "ann"})
    assert arguments == {"ctx": context, "customer": "ann"}


def test_the_context_is_found_by_its_annotation(context: TaskContext) -> None:
    def charge(customer: str, where: TaskContext) -> None: ...

    assert bind(charge).arguments(context, {"customer": "ann"}) == {"where": context, "customer": "ann"}


def test_a_parameter_named_input_takes_everything(context: TaskContext) -> None:
    def charge(input: Any) -> None: ...

    assert bind(charge).arguments(context, [1, 2]) == {"input": [1, 2]}


def test_missing_and_unknown_keys_are_listed_together(context: TaskContext) -> None:
    def charge(customer: str, amount: int) -> None: ...

    with pytest.raises(InvalidTaskInputError) as caught:
        bind(charge).arguments(context, {"amount": 1, "currency": "x"})
    assert str(caught.value) == "input: customer is missing, currency is unknown; expected amount, customer"
    assert caught.value.error_type == "invalid_input"


def test_further_keys_are_taken_by_keyword_arguments(context: TaskContext) -> None:
    def charge(customer: str, **rest: Any) -> None: ...

    assert bind(charge).arguments(context, {"customer": "ann", "x": 1}) == {"customer": "ann", "x": 1}


def test_no_input_is_an_empty_object(context: TaskContext) -> None:
    def tick() -> None: ...

    assert bind(tick).arguments(context, None) == {}
    with pytest.raises(InvalidTaskInputError, match="expected nothing"):
        bind(tick).arguments(context, {"x": 1})


def test_a_list_needs_a_parameter_named_input(context: TaskContext) -> None:
    def charge(customer: str) -> None: ...

    with pytest.raises(InvalidTaskInputError, match="input is a list; expected an object"):
        bind(charge).arguments(context, ["ann"])


def test_signatures_that_cannot_be_called_by_name_are_refused() -> None:
    def positional(a: int, /) -> None: ...

    def variadic(*all: int) -> None: ...

    def both(input: Any, other: int) -> None: ...

    for function, what in ((positional, "is positional"), (variadic, "is positional"), (both, "takes the whole input")):
        with pytest.raises(TypeError, match=what):
            bind(function)


def test_the_context_says_which_attempt_it_is(context: TaskContext) -> None:
    assert isinstance(context.run_id, UUID)
    assert (context.node, context.attempt, context.type, context.namespace) == ("charge", 1, "charge-card", "shop")
    assert context.input == {"customer": "ann", "amount": 3}
    assert context.idempotency_key == f"{context.run_id}/0/charge/0"
    assert 0 < context.remaining <= 300
    assert TaskContext(claimed(attempt=2, run_id=context.run_id)).idempotency_key == context.idempotency_key
