"""Bounds of expressions.

Invariant: with these an evaluation ends within about 50 ms and a few MiB, whatever is written and whatever the data
is: the visits are counted while evaluating, and a comprehension pays for its whole list before its first element.
"""

from __future__ import annotations

from typing import Final

SOURCE_LENGTH: Final = 4096
"""Characters of one expression."""
SHORT_SOURCE_LENGTH: Final = 1024
"""Characters of a duration or a name written as an expression."""
NESTING: Final = 24
"""Parentheses, brackets, calls and conditionals inside each other."""
DEPTH: Final = 100
"""Height of the syntax tree: ``a + b + c + …`` grows with each operator."""
COMPREHENSIONS: Final = 2
"""map, filter, all, exists, exists_one inside each other's bodies."""
VISITS: Final = 150_000
"""Syntax nodes evaluated for one field, over all its expressions; about a quarter of a microsecond each."""
TOKEN_VISITS: Final = 16
"""Visits that a ``${…}`` takes besides what is in it: a field may have tens of thousands."""
FOLDING_VISITS: Final = 2_000
"""Visits that an expression without variables may take to be evaluated when it is compiled."""
STRING_LENGTH: Final = 1_048_576
"""Characters of a string that an expression makes."""
LIST_LENGTH: Final = 10_000
"""Elements of a list made by range, split or flatten."""
RESULT_LENGTH: Final = 4_194_304
"""Characters of JSON that the expressions of one field may add up to."""
TEMPLATE_DEPTH: Final = 64
"""Objects and lists inside each other in one field."""
