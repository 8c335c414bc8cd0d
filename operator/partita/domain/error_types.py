"""The error types that Partita itself gives, and what a match list takes.

Invariant: every reserved type that the engine can record is in ``RESERVED``; the table in the documentation is made
from it. A task may use any other type of ``PATTERN`` for its own failures, and no other can be matched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ErrorType:
    """One reserved error type."""

    name: str
    """The type as recorded; ``*`` stands for a varying part."""
    meaning: str
    any_matches: bool = True
    """Whether ``any`` in a match list takes it."""
    later: bool = False
    """Kept for a later version: nothing in this one records it."""


LONGEST: Final = 63
"""Characters of an error type."""
PATTERN: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
"""The form of every error type: what workers report, ``fail`` gives and match lists name."""
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

TIMEOUT: Final = "timeout"
SCHEDULE_TO_START: Final = "schedule_to_start"
LEASE_LOST: Final = "lease_lost"
EXPRESSION: Final = "expression"
FATAL: Final = "fatal"
CANCELLED: Final = "cancelled"
NO_CASE_MATCHED: Final = "no_case_matched"
OUTPUT_TOO_LARGE: Final = "output_too_large"
INPUT_TOO_LARGE: Final = "input_too_large"
UNKNOWN_TASK_TYPE: Final = "unknown_task_type"
DEFINITION_NOT_FOUND: Final = "definition_not_found"
INVALID_INPUT: Final = "invalid_input"
DEPTH_EXCEEDED: Final = "depth_exceeded"
MAX_ITERATIONS: Final = "max_iterations"
TOO_MANY_ITEMS: Final = "too_many_items"
TOO_FEW_ITEMS: Final = "too_few_items"

RESERVED: Final = (
    ErrorType(TIMEOUT, "an attempt, a wait for an event or the whole run took longer than its timeout"),
    ErrorType(SCHEDULE_TO_START, "no worker took the task within scheduleToStart"),
    ErrorType(LEASE_LOST, "workers stopped renewing their lease on the task more often than the budget allows"),
    ErrorType(EXPRESSION, "an expression of the node could not be evaluated on this data", any_matches=False),
    ErrorType(FATAL, "the task gave up for good; only an explicit match takes it", any_matches=False),
    ErrorType(
        CANCELLED, "the run ended, a join no longer needed the node, or its child was cancelled", any_matches=False
    ),
    ErrorType(NO_CASE_MATCHED, "no case of a switch was true and there is no case without when"),
    ErrorType(OUTPUT_TOO_LARGE, "the output is larger than the limit"),
    ErrorType(INPUT_TOO_LARGE, "the evaluated input of a task or child is larger than the limit"),
    ErrorType(UNKNOWN_TASK_TYPE, "workers that took the task do not know its type, more often than the budget allows"),
    ErrorType(DEFINITION_NOT_FOUND, "the definition, or the version of it, that a child is to run does not exist"),
    ErrorType(INVALID_INPUT, "the input of a child does not fit the inputSchema of its definition"),
    ErrorType(DEPTH_EXCEEDED, "a child would have more ancestors than are allowed"),
    ErrorType(MAX_ITERATIONS, "a repeat did not end within maxIterations"),
    ErrorType(TOO_MANY_ITEMS, "a forEach has more items than are allowed"),
    ErrorType(TOO_FEW_ITEMS, "a forEach has fewer items than its joinCount"),
    ErrorType(
        "http_*",
        "partita.http got a status that it does not expect, such as http_404, or no usable answer, "
        "such as http_unreachable",
    ),
    ErrorType("exit_*", "the container of a job ended with this exit code, such as exit_1", later=True),
)
"""Every reserved type, in the order of the documentation."""

ANY: Final = "any"
OWN: Final = frozenset({ANY, *(entry.name for entry in RESERVED)})
"""Types that a task cannot give to its own errors; one of a family, such as ``http_404``, it can."""
_FAMILIES: Final = tuple(entry.name.removesuffix("*") for entry in RESERVED if entry.name.endswith("*"))
_NOT_BY_ANY: Final = frozenset(entry.name for entry in RESERVED if not entry.any_matches)


def fits(name: str) -> bool:
    """Whether a text has the form of an error type."""
    return len(name) <= LONGEST and PATTERN.match(name) is not None


def is_reserved(name: str) -> bool:
    """Whether only Partita itself gives this type, or it has another meaning in match lists."""
    return name in OWN or name.startswith(_FAMILIES)


def snake_case(name: str) -> str:
    """The name of a class as types are spelled (``CardDeclined`` → ``card_declined``)."""
    return re.sub(r"[^a-z0-9_]", "_", _WORD_START.sub("_", name).lower().strip("_"))


def type_named(text: str) -> str:
    """The type that an exception class of this name has; empty if none."""
    name = snake_case(text[: 2 * LONGEST])
    return name if fits(name) else ""


def matches(match: Sequence[str], error_type: str) -> bool:
    """Whether a match list takes an error; an empty list is the same as ``[any]``."""
    if error_type in match:
        return True
    return (not match or ANY in match) and error_type not in _NOT_BY_ANY
