"""Expressions: CEL inside ``${…}``.

Purpose: everything that a manifest computes. Invariant: pure, deterministic and bounded; nothing but ExpressionError
leaves an evaluation. Compiled once for each definition, evaluated often.
"""

from partita.domain.expressions.analysis import NODE_FIELDS, References, merged
from partita.domain.expressions.condition import Condition, DurationTemplate, compile_condition, compile_duration
from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.template import Template, compile_template

__all__ = [
    "NODE_FIELDS",
    "Condition",
    "DurationTemplate",
    "ExpressionError",
    "References",
    "Template",
    "compile_condition",
    "compile_duration",
    "compile_template",
    "merged",
]
