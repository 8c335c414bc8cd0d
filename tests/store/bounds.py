"""Which sorts of a plan are bounded: by a limit below them, by the batch, or by a key that is given as a whole.

Invariant: a scan counts as bounded only when it finds at most one row a value (all columns of a unique index are
given), goes by places of rows, or reads one of the tables of a few rows; a join, when both of its sides do; everything
else passes on what is below it. Trade-off: what the size of a run bounds is not told apart from what nothing
bounds, so that a statement that sorts the rows of one run says so by a mark of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from partita.store.database import Connection

Node = dict[str, Any]

_GIVEN: Final = re.compile(r"(?<![\w.\"])\"?(\w+)\"? = ")
_SORTS: Final = {"Sort", "Incremental Sort"}
_ONE_ROW: Final = {"Result", "Function Scan", "Values Scan", "Tid Scan", "WorkTable Scan", "Table Function Scan"}
_SCANS: Final = {"Index Scan", "Index Only Scan"}
_APART: Final = {"InitPlan", "SubPlan"}
_INDEXES: Final = """
SELECT c.relname::text AS name, array_agg(coalesce(a.attname::text, '') ORDER BY k.place) AS columns
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (number, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE n.nspname = 'partita' AND i.indisunique AND k.place <= i.indnkeyatts
GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a schema."""

    unique: Mapping[str, AbstractSet[str]]
    """Columns of each unique index."""
    small: AbstractSet[str]
    """Tables of a few rows."""

    @classmethod
    async def of(cls, connection: Connection, small: AbstractSet[str]) -> Bounds:
        """Read the catalog."""
        rows = await connection.fetch(_INDEXES)
        return cls({row["name"]: frozenset(row["columns"]) for row in rows}, small)

    def unbounded_sorts(self, root: Node) -> list[str]:
        """What is sorted without a bound: the tables below each such sort."""
        named = {node["Subplan Name"]: node for node in nodes(root) if "Subplan Name" in node}
        return [
            ", ".join(sorted({each["Relation Name"] for each in nodes(node) if "Relation Name" in each}))
            for node in nodes(root)
            if node["Node Type"] in _SORTS and not self._bounded(node, named)
        ]

    def _bounded(self, node: Node, named: Mapping[str, Node]) -> bool:
        kind = node["Node Type"]
        if kind == "Limit" or kind in _ONE_ROW or (kind == "Aggregate" and node["Strategy"] == "Plain"):
            return True
        if kind in _SCANS:
            return self._finds_one(node, node["Index Name"]) or self._small(node)
        if kind == "CTE Scan":
            return self._bounded(named[f"CTE {node['CTE Name']}"], named)
        inputs = [each for each in node.get("Plans", ()) if each.get("Parent Relationship") not in _APART]
        if kind == "Bitmap Heap Scan":
            found = [each for each in nodes(inputs[0]) if each["Node Type"] == "Bitmap Index Scan"]
            return all(self._finds_one(each, each["Index Name"]) for each in found)
        if node.get("Join Type") in {"Semi", "Anti"} or node.get("Inner Unique"):
            inputs = inputs[:1]
        return self._small(node) if not inputs else all(self._bounded(each, named) for each in inputs)

    def _finds_one(self, node: Node, index: str) -> bool:
        columns = self.unique.get(index)
        return columns is not None and columns <= set(_GIVEN.findall(node.get("Index Cond", "")))

    def _small(self, node: Node) -> bool:
        return node.get("Relation Name") in self.small


def nodes(node: Node) -> Iterator[Node]:
    """A node and everything below it."""
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)
