"""Definitions that generated ones may start children of, by name."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
_SCHEMA = {
    "type": "object",
    "required": ["k"],
    "properties": {"k": {"type": "integer"}, "flag": {"type": "boolean", "default": True}},
}
CATALOGUE: dict[str, dict[int, Manifest]] = {
    "other": {
        1: {"nodes": [{"name": "o1", "task": {"type": "work"}, "input": {"k": "${input.k}"}}],
            "output": {"o": "${nodes.o1.output}"}},
        2: {"inputSchema": _SCHEMA, "config": {"c": 9},
            "nodes": [{"name": "o2", "task": {"type": "work"}, "input": {"k": "${input.flag}", "c": "${config.c}"}}],
            "output": {"o": "${nodes.o2.output}"}},
    },
    "asks": {
        1: {"nodes": [{"name": "a1", "waitForEvent": {"name": "go", "timeout": "30s", "onTimeout": {"output": {}}}},
                      {"name": "a2", "workflow": {"subflow": "deep"}}],
            "subflows": [{"name": "deep", "nodes": [
                {"name": "a3", "waitForEvent": {"name": "go", "timeout": "20s", "onTimeout": {"next": []}}}],
                "output": {"d": "${nodes.a3.output}"}}],
            "output": {"a": "${nodes.a1.output}", "d": "${nodes.a2.output}"}},
    },
}  # fmt: skip  # reads as two short definitions
