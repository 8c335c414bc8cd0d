"""JSON Schema 2020-12 for inputs and signals: checked when defined, defaults first, every violation with its path."""

from partita.domain.schema.check import schema_problems
from partita.domain.schema.defaults import with_defaults
from partita.domain.schema.validate import violations
from partita.domain.schema.walk import Budget, TooMuchError

__all__ = ["Budget", "TooMuchError", "schema_problems", "violations", "with_defaults"]
