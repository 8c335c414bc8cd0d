"""JSON Schema 2020-12 for inputs and signals: checked when defined, defaults first, every violation with its path."""

from partita.domain.schema.check import schema_problems
from partita.domain.schema.defaults import with_defaults
from partita.domain.schema.validate import violations

__all__ = ["schema_problems", "violations", "with_defaults"]
