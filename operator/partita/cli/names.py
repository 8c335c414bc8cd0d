"""Checks of the names that a person types, before anything is asked of a backend.

Invariant: an empty name never reaches a database or a cluster, where it would mean whichever run has no name; and what
an object's field would not take is refused alike for both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from partita.domain.errors import InvalidError, Problem
from partita.domain.names import NAME, NAMESPACE_NAME, OBJECT, Form
from partita.domain.places import shortened
from partita.domain.state.rows import UNDO

_RUN_ID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
NODE = Form(NAME, 63, "a node's name such as chargeCard")
ROW = Form(
    re.compile(NAME.pattern.removesuffix(r"\Z") + rf"({UNDO})?\Z"), 63 + len(UNDO), "a node's name, or name~undo"
)
"""A node, or what reverses it."""
_RUN = replace(OBJECT, expected="a run's id or its object's name")


def is_run_id(text: str) -> bool:
    """Whether a run is named by its id, not by its object's name."""
    return _RUN_ID.match(text) is not None


def checked(what: str, text: str, form: Form) -> str:
    """A name as it is; raises InvalidError."""
    problem = form.problem(text)
    if problem:
        raise InvalidError(what, (Problem("", problem),))
    return text


def run(text: str) -> str:
    """A run's id or its object's name; raises InvalidError."""
    return text if is_run_id(text) else checked("RUN", text, _RUN)


def optional_run(text: str) -> str:
    """A run's id, or an empty text where none was said; raises InvalidError."""
    if text and not is_run_id(text):
        raise InvalidError("--run", (Problem("", f"{shortened(text)!r} is no run's id"),), hint="partita list")
    return text


def optional_parent(text: str | None) -> str | None:
    """A run's id or its object's name, if one was said; raises InvalidError."""
    return None if text is None else run(text)


def namespace(text: str) -> str:
    """A namespace, or an empty text where none was said; raises InvalidError."""
    return checked("--namespace", text, NAMESPACE_NAME) if text else text


def optional(what: str, form: Form) -> Callable[[str | None], str | None]:
    """The check of an option that may be left out."""
    return lambda text: None if text is None else checked(what, text, form)


def repeated(what: str, form: Form) -> Callable[[list[str] | None], list[str] | None]:
    """The check of an option that may be given several times."""
    return lambda texts: None if texts is None else [checked(what, text, form) for text in texts]


def get_command(run: str, namespace: str) -> str:
    """The command that shows a run, with its namespace where that is not the usual one."""
    return f"partita get {run}" + (f" -n {namespace}" if namespace not in ("", "default") else "")
