"""Which functions execute which task types.

Invariant: a registry holds one function a type and is complete before a worker starts with it. There is no global
registry: ``@task`` only marks a function, and a ``Tasks`` object collects, so that tests and processes never see each
other's tasks.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeVar

from partita.domain.errors import InvalidError, Problem
from partita.worker.binding import Binding, bind

F = TypeVar("F", bound=Callable[..., Any])

_TYPE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_MARK: Final = "__partita_task__"


@dataclass(frozen=True, slots=True)
class TaskFunction:
    """A registered function."""

    type: str
    function: Callable[..., Any]
    binding: Binding
    is_async: bool
    """An async function runs on the event loop, any other in a thread."""


def task(type: str) -> Callable[[F], F]:  # noqa: A002 - the word manifests use
    """Mark a function as the one that executes tasks of this type; ``Tasks.of`` and ``Tasks.add`` collect it."""
    _check_type(type)

    def mark(function: F) -> F:
        bind(function)
        setattr(function, _MARK, type)
        return function

    return mark


class Tasks:
    """The task types that a worker executes: ``partita worker module:app`` starts one with the object ``app``."""

    def __init__(self) -> None:
        self._functions: dict[str, TaskFunction] = {}

    @classmethod
    def of(cls, *modules: ModuleType) -> Tasks:
        """Collect every function of the modules that is marked with ``@task``."""
        tasks = cls()
        for module in modules:
            for _, member in sorted(vars(module).items()):
                if callable(member) and getattr(member, "__module__", "") == module.__name__ and _marked(member):
                    tasks.add(member)
        return tasks

    def task(self, type: str) -> Callable[[F], F]:  # noqa: A002 - the word manifests use
        """Register a function (or a bound method): ``@app.task("charge-card")``."""
        _check_type(type)

        def register(function: F) -> F:
            self._register(type, function)
            return function

        return register

    def add(self, *functions: Callable[..., Any]) -> None:
        """Register functions marked with ``@task``; raises ValueError for a type that is already taken."""
        for function in functions:
            name = _marked(function)
            if not name:
                raise TypeError(f'{function!r}: is not marked; expected @task("type") on it')
            self._register(name, function)

    def get(self, type: str) -> TaskFunction | None:  # noqa: A002 - the word manifests use
        """The function of a type."""
        return self._functions.get(type)

    def _register(self, name: str, function: Callable[..., Any]) -> None:
        if name in self._functions and self._functions[name].function != function:
            raise ValueError(f"task {name}: is registered twice; expected one function a type")
        self._functions[name] = TaskFunction(name, function, bind(function), _is_async(function))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._functions))

    def __len__(self) -> int:
        return len(self._functions)


def load(target: str) -> Tasks:
    """The registry named by ``module`` or ``module:attribute``.

    The attribute is a ``Tasks`` object, or a function that makes one; a module alone gives its functions marked with
    ``@task``. Raises InvalidError that says what was found instead.
    """
    module_name, _, attribute = target.partition(":")
    module = _import(target, module_name)
    if not attribute:
        tasks: object = Tasks.of(module)
    else:
        tasks = _attribute(target, module, attribute)
        if callable(tasks):
            tasks = tasks()
    if not isinstance(tasks, Tasks):
        raise _refused(target, f"is {type(tasks).__name__}; expected a partita.worker.Tasks object")
    if not tasks and not attribute:
        raise _none_marked(module)
    if not tasks:
        raise _refused(target, "has no tasks; expected functions marked with @task")
    return tasks


def _import(target: str, name: str) -> ModuleType:
    if "/" in name or name.endswith(".py"):
        dotted = name.removesuffix(".py").strip("./").replace("/", ".")
        raise _refused(
            target, f"is a file; expected a module, such as {dotted}:app", hint=f"partita worker {dotted}:app"
        )
    if not all(part.isidentifier() for part in name.split(".")):
        raise _refused(target, "is no name of a module; expected module:attribute")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise _refused(target, f"no module named {error.name}; expected module:attribute on the path") from error


def _attribute(target: str, module: ModuleType, name: str) -> object:
    try:
        return functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        raise _refused(target, f"{module.__name__} has no {name}; expected a Tasks object of that name") from None


def _none_marked(module: ModuleType) -> InvalidError:
    """A module without marked functions; names the ``Tasks`` object that was meant, if it has one."""
    found = [name for name, value in vars(module).items() if isinstance(value, Tasks)]
    hint = f"partita worker {module.__name__}:{found[0]}" if found else "partita worker --help"
    return _refused(module.__name__, "has no tasks; expected functions marked with @task", hint=hint)


def _refused(target: str, message: str, *, hint: str = "partita worker --help") -> InvalidError:
    return InvalidError("worker", (Problem(target, message),), hint=hint)


def _marked(function: Callable[..., Any]) -> str:
    mark = getattr(function, _MARK, "")
    return mark if isinstance(mark, str) else ""


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object with an async __call__ counts


def _check_type(name: str) -> None:
    if not _TYPE.fullmatch(name):
        raise ValueError(f"task {name!r}: is no task type; expected letters, digits, dots, hyphens and underscores")
    if name.startswith("partita."):
        raise ValueError(f"task {name}: is built in; expected a name that does not begin with partita.")
