"""How a task's input reaches its function.

Invariant: the rule is read from the signature once, when the function is registered; calling costs a dictionary lookup.
A parameter annotated ``TaskContext`` (or named ``ctx``) takes the context; a parameter named ``input`` takes the whole
input; otherwise the input must be an object, and its keys are the function's keyword arguments, checked like a call.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from partita.domain.payload import Json
from partita.worker.context import TaskContext
from partita.worker.failures import TaskError


class InvalidTaskInputError(TaskError):
    """The input does not fit the function's parameters."""

    error_type: ClassVar[str] = "invalid_input"


@dataclass(frozen=True, slots=True)
class Binding:
    """What to pass to a function."""

    context: str
    """Parameter that takes the context; empty if none."""
    whole: str
    """Parameter that takes the whole input; empty if the keys are bound one by one."""
    names: frozenset[str]
    required: frozenset[str]
    open: bool
    """The function takes any further key (``**kwargs``)."""

    def arguments(self, context: TaskContext | None, value: Json) -> dict[str, Any]:
        """Keyword arguments of the call; raises InvalidTaskInputError with what is missing or unknown. The context may
        be None for a function that takes none.
        """
        arguments: dict[str, Any] = {self.context: context} if self.context else {}
        if value == {} and not (self.whole or self.required):
            return arguments
        if self.whole:
            arguments[self.whole] = value
            return arguments
        arguments.update(self._by_name({} if value is None else value))
        return arguments

    def _by_name(self, value: Json) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise InvalidTaskInputError(f"input is {_kind(value)}; expected an object, or a parameter named input")
        missing = sorted(self.required - value.keys())
        unknown = [] if self.open else sorted(value.keys() - self.names)
        reserved = sorted(value.keys() & {self.context}) if self.context and self.open else []
        if missing or unknown or reserved:
            problems = [f"{name} is missing" for name in missing] + [f"{name} is unknown" for name in unknown]
            problems += [f"{name} is the name of the context's parameter" for name in reserved]
            raise InvalidTaskInputError(f"input: {', '.join(problems)}; expected {self._expected()}")
        return value

    def _expected(self) -> str:
        known = ", ".join(sorted(self.names)) or "nothing"
        return f"{known} and any other key" if self.open else known


def bind(function: Callable[..., Any]) -> Binding:
    """Read a function's signature; raises TypeError for one that cannot be called with named arguments."""
    hints = _hints(function)
    context = whole = ""
    names: dict[str, bool] = {}
    accepts_more = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            accepts_more = True
        elif parameter.kind in {parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL}:
            raise TypeError(f"{_name(function)}: {parameter.name}: is positional; expected named parameters")
        elif hints.get(parameter.name) is TaskContext or (parameter.name == "ctx" and "ctx" not in hints):
            if context:
                raise TypeError(f"{_name(function)}: {parameter.name}: is a second context; expected one")
            context = parameter.name
        elif parameter.name == "input":
            whole = parameter.name
        else:
            names[parameter.name] = parameter.default is parameter.empty
    if whole and (names or accepts_more):
        raise TypeError(f"{_name(function)}: input: takes the whole input; expected no parameter beside it")
    required = frozenset(name for name, needed in names.items() if needed)
    return Binding(context, whole, frozenset(names), required, accepts_more)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolved annotations; a name that cannot be resolved (imported for type checkers only) counts as its text."""
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        raw = dict(getattr(function, "__annotations__", {}))
        return {name: TaskContext if str(hint).endswith("TaskContext") else hint for name, hint in raw.items()}


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _kind(value: Json) -> str:
    return {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}.get(
        type(value), type(value).__name__
    )
