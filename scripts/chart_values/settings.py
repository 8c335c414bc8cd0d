"""The settings of the product as values of the chart: every field of the tree, but what the chart sets.

Invariant: a setting is either below ``settings`` or in ``CHARTED`` with the value that sets it. Names are written as
Helm's are, ``settings.engine.batchSize`` for ``PARTITA_ENGINE_BATCH_SIZE``. Defaults stay with the product: a setting
that is not given is not passed.
"""

from __future__ import annotations

import re
from dataclasses import Field, fields, replace
from typing import Any, Final, get_type_hints

from settings_page import docstrings
from settings_page import name as variable

from chart_values.nodes import UNSET, Node, group, hidden
from partita.settings import FIXED, Settings

CHARTED: Final = {
    ("database", "url"): "database.url",
    ("database", "migrations_url"): "database.migrations",
    ("database", "read_url"): "database.read",
    ("database", "schema"): "database.schema",
    ("database", "pooled"): "database.pooled",
    ("database", "planner"): "database.planner",
    ("worker", "queues"): "workers.NAME.queues",
    ("worker", "namespaces"): "workers.NAME.namespaces",
    ("worker", "slots"): "workers.NAME.slots",
    ("worker", "health_bind"): "workers.NAME.health",
    ("operator", "namespace"): "the release's namespace",
    ("operator", "watch_namespaces"): "watchNamespaces",
    ("operator", "cluster_uid"): "clusterUid",
    ("operator", "engine_spec"): "engine",
}
"""Section and field of a setting → the value of the chart that sets it."""
_TYPES: Final = {int: "integer", bool: "boolean", str: "string"}


def camel(name: str) -> str:
    """The name of a field as Helm's values are written: batch_size is batchSize."""
    return re.sub(r"_(\w)", lambda part: part[1].upper(), name)


def settings() -> Node:
    """The group ``settings``."""
    sections = {camel(section): _section(section, kind) for section, kind in get_type_hints(Settings).items()}
    words = "Settings of the processes; what is not given has the product's default. See docs/settings.md."
    return replace(hidden(group(words, **sections)), shared="settings")


def _section(section: str, kind: type) -> Node:
    words = " ".join((kind.__doc__ or "").split())
    items = {camel(item.name): _setting(section, kind, item) for item in fields(kind) if _passed(section, item)}
    return hidden(group(words, **items))


def _passed(section: str, item: Field[Any]) -> bool:
    place = (section, item.name)
    return place not in CHARTED and place not in FIXED.values()


def _setting(section: str, kind: type, item: Field[Any]) -> Node:
    explained, hint = dict(docstrings()), get_type_hints(kind)[item.name]
    words = f"{explained[f'{kind.__name__}.{item.name}']} (`{variable(section, item.name)}`)"
    description = " ".join(words.replace("``", "`").split())
    if hint not in _TYPES:
        schema: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
        return Node(description=description, kind="list of strings", default=UNSET, schema=schema)
    schema = {"type": _TYPES[hint]}
    if "low" in item.metadata:
        schema |= {"minimum": item.metadata["low"], "maximum": item.metadata["high"]}
    if "pattern" in item.metadata:
        schema["pattern"] = f"^({item.metadata['pattern']})$"
    return Node(description=description, kind=_TYPES[hint], default=UNSET, schema=schema)
