"""The functions that expressions may call. Importing the package fills the table."""

from partita.domain.expressions.functions import convert, encode, lists, strings, times
from partita.domain.expressions.functions.registry import FUNCTIONS, Function, charge

__all__ = ["FUNCTIONS", "Function", "charge", "convert", "encode", "lists", "strings", "times"]
