"""The refusal of a start whose key belongs to another object, which may have gone meanwhile.

It stands apart from the other errors since nobody but the operator, which can look for that object, can do anything
about it; to everyone else it is an idempotency key in use.
"""

from __future__ import annotations

from uuid import UUID

from partita.domain.errors import IdempotencyKeyInUseError


class HeldByObjectError(IdempotencyKeyInUseError):
    """The same order came in another WorkflowRun object; if that is gone, its run ``run_id`` may change hands."""

    def __init__(self, message: str, *, hint: str, run_id: UUID) -> None:
        super().__init__(message, hint=hint)
        self.run_id = run_id
