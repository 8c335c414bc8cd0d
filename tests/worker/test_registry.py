"""Registering tasks and finding them by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from partita.domain.errors import InvalidError
from partita.worker import Tasks, load, task


@pytest.fixture
def module() -> Iterator[ModuleType]:
    made = ModuleType("shop_tasks")
    sys.modules["shop_tasks"] = made
    yield made
    del sys.modules["shop_tasks"]


async def charge() -> None: ...


def pack() -> None: ...


def test_functions_are_registered_by_type() -> None:
    app = Tasks()
    app.task("charge-card")(charge)
    app.task("pack")(pack)
    assert list(app) == ["charge-card", "pack"]
    found, other = app.get("charge-card"), app.get("pack")
    assert found is not None
    assert other is not None
    assert (found.is_async, other.is_async) == (True, False)
    assert app.get("unknown") is None


def test_one_function_a_type() -> None:
    app = Tasks()
    app.task("pack")(pack)
    with pytest.raises(ValueError, match="registered twice"):
        app.task("pack")(lambda: None)


def test_built_in_names_and_odd_names_are_refused() -> None:
    with pytest.raises(ValueError, match="is built in"):
        task("partita.http")
    with pytest.raises(ValueError, match="is no task type"):
        task("pack it")


def test_a_module_is_a_registry_of_its_marked_functions(module: ModuleType) -> None:
    def ship() -> None: ...

    ship.__module__ = "shop_tasks"
    module.ship = task("ship")(ship)  # type: ignore[attr-defined]  # a module made by hand
    assert list(load("shop_tasks")) == ["ship"]


def test_an_attribute_is_an_object_or_makes_one(module: ModuleType) -> None:
    app = Tasks()
    app.task("pack")(pack)
    module.app = app  # type: ignore[attr-defined]  # a module made by hand
    module.make = lambda: app  # type: ignore[attr-defined]  # a module made by hand
    assert load("shop_tasks:app") is app
    assert load("shop_tasks:make") is app


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:app", "no module named no_such_module"),
        ("shop_tasks:nothing", "shop_tasks has no nothing"),
        ("shop_tasks:number", "is int; expected a partita.worker.Tasks object"),
        ("shop_tasks", "has no tasks"),
    ],
)
def test_what_cannot_be_loaded_is_said(module: ModuleType, target: str, message: str) -> None:
    module.number = 3  # type: ignore[attr-defined]  # a module made by hand
    with pytest.raises(InvalidError, match=message):
        load(target)


def test_errors_inside_the_module_are_not_hidden(module: ModuleType) -> None:
    def broken() -> Tasks:
        raise ModuleNotFoundError("No module named 'stripe'", name="stripe")

    module.broken = broken  # type: ignore[attr-defined]  # a module made by hand
    with pytest.raises(ModuleNotFoundError, match="stripe"):
        load("shop_tasks:broken")
