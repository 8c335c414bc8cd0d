"""The examples do what their first lines say: each is run by ``partita dev run``, as a reader would."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
YES = '{"by":"%s","ok":true}'
NO = '{"by":"%s","ok":false}'


@dataclass(frozen=True, slots=True)
class Example:
    """A file, the signals that are sent, and how its run ends."""

    file: str
    events: tuple[str, ...]
    phase: str
    output: Any = None
    error: str = ""
    nodes: str = ""
    """Names with an undo or in finally that must have ended as Completed, in their order."""


TREE = ["/index.txt", "/notes/index.txt", "/songs/index.txt", "/songs/old/index.txt"]
EXAMPLES = [
    Example("polling", (), "Succeeded", {"pages": [2, 4, 5]}),
    Example(
        "fan-out",
        (),
        "Succeeded",
        {
            "thumbnails": [
                {"picture": f"{number}-200-{name}.png", "bytes": 8000}
                for number, name in enumerate(("dawn", "noon", "dusk", "night"), 1)
            ],
            "bytes": 32_000,
        },
    ),
    Example("children", (), "Succeeded", {"report": ", ".join(TREE), "files": 4}),
    Example("saga", (), "Failed", None, "card_declined", "hotel~undo flight~undo tell"),
    Example("approval", (f"approve={YES % 'ada'}", f"approve={YES % 'ben'}"), "Succeeded", {"by": ["ada", "ben"]}),
    Example("approval", (f"approve={NO % 'ada'}",), "Failed", None, "refused"),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.file}-{example.phase}")
def test_an_example_runs(example: Example, database_url: str) -> None:
    events = [word for event in example.events for word in ("--event", event)]
    command = [str(Path(sys.executable).parent / "partita"), "dev", "run", f"examples/{example.file}.yaml"]
    done = subprocess.run(
        [*command, *events, "--database-url", database_url, "-o", "json"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    (run,) = json.loads(done.stdout or "[{}]")
    assert run.get("run", {}).get("phase") == example.phase, done.stdout + done.stderr
    assert done.returncode == (0 if example.phase == "Succeeded" else 1)
    assert run["output"] == example.output
    assert (run["error"] or {}).get("type", "") == example.error
    ended = {node["name"]: node["state"] for node in run["nodes"]}
    assert {name: ended[name] for name in example.nodes.split()} == dict.fromkeys(example.nodes.split(), "Completed")
