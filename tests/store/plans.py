"""What PostgreSQL would do for a named block, as numbers to compare with the block's mark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import orjson

from partita.store.database import Connection
from tests.store.bounds import Bounds, nodes

_PARTITION: Final = re.compile(r"^(\w+)_(\d{6})$")
_NAMES_RUNS: Final = re.compile(r"\b(?:run_)?id = ")
_SAMPLES: Final = {
    "text": "'x'",
    "uuid": "'{id}'",
    "timestamp with time zone": "clock_timestamp()",
    "json": "'null'",
    "jsonb": "'{{}}'",
    "boolean": "true",
    "date": "current_date",
    "interval": "'1s'",
    "bytea": "''",
    "oid": "1",
    "tid": "'(0,1)'",
    "xid": "'3'",
    "regclass": "'pg_class'",
    "name": "'x'",
}
"""A value for each type; numbers are 1, arrays hold one element."""


@dataclass(slots=True)
class Plan:
    """The tables that a plan reads."""

    partitions: dict[str, set[str]] = field(default_factory=dict)
    """Months left after pruning, by table of records."""
    sequential: set[str] = field(default_factory=set)
    """Tables that are read from end to end: by a sequential scan, or through an index without a condition."""
    ranges: set[str] = field(default_factory=set)
    """Tables of records in which every row between two ids is read: the smallest and the largest of a batch may be
    months of runs apart."""
    unbounded_sorts: list[str] = field(default_factory=list)
    """Tables below each sort that nothing bounds."""
    text: str = ""


async def prepare(connection: Connection, name: str, statement: str) -> list[str]:
    """Prepare a statement on the server and return the types of its parameters."""
    await connection.execute(f"PREPARE {name} AS {statement}")
    query = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = $1"
    types: list[str] = await connection.fetchval(query, name)
    return types


async def explain(connection: Connection, name: str, types: list[str], run_id: UUID, bounds: Bounds) -> Plan:
    """The plan of a prepared statement when every id is this one."""
    values = ", ".join(_sample(each, run_id) for each in types)
    call = f"{name}({values})" if types else name
    text = await connection.fetchval(f"EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE {call}")
    root = orjson.loads(text)[0]["Plan"]
    plan = Plan(text=text, unbounded_sorts=bounds.unbounded_sorts(root))
    for node in nodes(root):
        _note(plan, node)
    return plan


def _sample(kind: str, run_id: UUID) -> str:
    element = kind.removesuffix("[]")
    value = _SAMPLES.get(element, "1").format(id=run_id)
    return f"ARRAY[{value}]::{kind}" if kind != element else f"({value})::{kind}"


def _note(plan: Plan, node: dict[str, Any]) -> None:
    relation = node.get("Relation Name")
    if relation is None or node["Node Type"] == "ModifyTable":
        return
    match = _PARTITION.match(relation)
    if match:
        plan.partitions.setdefault(match[1], set()).add(match[2])
    if node["Node Type"] == "Seq Scan" or not _has_condition(node):
        plan.sequential.add(match[1] if match else relation)
    elif match and _is_range(node.get("Index Cond") or node.get("Recheck Cond")):
        plan.ranges.add(match[1])


def _is_range(condition: str | None) -> bool:
    """Whether a condition of an index names no run."""
    return condition is not None and not _NAMES_RUNS.search(condition)


def _has_condition(node: dict[str, Any]) -> bool:
    kind = node["Node Type"]
    if kind in {"Index Scan", "Index Only Scan"}:
        return "Index Cond" in node
    if kind == "Bitmap Heap Scan":
        return all("Index Cond" in each for each in nodes(node) if each["Node Type"] == "Bitmap Index Scan")
    return True
