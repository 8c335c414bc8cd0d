"""The error types that Partita itself gives, and what a match list takes.

Invariant: every reserved type that the engine can record is in ``RESERVED``; the table in the documentation is made
from it. A task may use any other type for its own failures.
"""

from __future__ import annotations

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

RESERVED: Final = (
    ErrorType(TIMEOUT, "an attempt, a wait for an event or the whole run took longer than its timeout"),
    ErrorType(SCHEDULE_TO_START, "no worker took the task within scheduleToStart"),
    ErrorType(LEASE_LOST, "workers stopped renewing their lease on the task more often than the budget allows"),
    ErrorType(EXPRESSION, "an expression of the node could not be evaluated on this data", any_matches=False),
    ErrorType(FATAL, "the task gave up for good; only an explicit match takes it", any_matches=False),
    ErrorType(CANCELLED, "the run ended, or a join no longer needed the node", any_matches=False),
    ErrorType(NO_CASE_MATCHED, "no case of a switch was true and there is no case without when"),
    ErrorType(OUTPUT_TOO_LARGE, "the output is larger than the limit"),
    ErrorType(INPUT_TOO_LARGE, "the evaluated input of a task is larger than the limit"),
    ErrorType(UNKNOWN_TASK_TYPE, "workers that took the task do not know its type, more often than the budget allows"),
    ErrorType("max_iterations", "a repeat did not end within maxIterations", later=True),
    ErrorType(
        "http_*",
        "partita.http got a status that it does not expect, such as http_404, or no usable answer, "
        "such as http_unreachable",
    ),
    ErrorType("exit_*", "the container of a job ended with this exit code, such as exit_1", later=True),
)
"""Every reserved type, in the order of the documentation."""

ANY: Final = "any"
_NOT_BY_ANY: Final = frozenset(entry.name for entry in RESERVED if not entry.any_matches)


def matches(match: Sequence[str], error_type: str) -> bool:
    """Whether a match list takes an error; an empty list is the same as ``[any]``."""
    if error_type in match:
        return True
    return (not match or ANY in match) and error_type not in _NOT_BY_ANY
