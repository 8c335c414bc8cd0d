"""The CRDs and the parser know the same fields, with the same bounds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from partita.domain import error_types, names
from partita.domain.durations import LONGEST_TEXT, PATTERN
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.loops import PERCENT
from partita.domain.manifest.refusals import LATER
from partita.domain.manifest.shapes import Shape

CRDS = Path(__file__).parents[3] / "crds"


def spec(name: str) -> Any:
    crd = yaml.safe_load((CRDS / f"{name}.yaml").read_text(encoding="utf-8"))
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


DEFINITION = spec("workflowdefinitions")
RUN = spec("workflowruns")
NODE = DEFINITION["properties"]["nodes"]["items"]
EVENT = NODE["properties"]["waitForEvent"]
SUBFLOW = DEFINITION["properties"]["subflows"]["items"]
FOR_EACH = NODE["properties"]["forEach"]
SIGNAL = RUN["properties"]["signals"]["items"]


@pytest.mark.parametrize(
    ("shape", "schema"),
    [
        (shapes.SPEC, DEFINITION),
        (shapes.DEFAULTS, DEFINITION["properties"]["defaults"]),
        (shapes.TIER, DEFINITION["properties"]["defaults"]["properties"]["retry"]["items"]),
        (shapes.TIER, NODE["properties"]["retry"]["items"]),
        (shapes.NODE, NODE),
        (shapes.TASK, NODE["properties"]["task"]),
        (shapes.CASE, NODE["properties"]["switch"]["items"]),
        (shapes.WAIT, NODE["properties"]["wait"]),
        (shapes.EVENT, EVENT),
        (shapes.ALTERNATIVE, EVENT["properties"]["anyOf"]["items"]),
        (shapes.ON_TIMEOUT, EVENT["properties"]["onTimeout"]),
        (shapes.ROUTE, NODE["properties"]["onError"]["items"]),
        (shapes.WORKFLOW, NODE["properties"]["workflow"]),
        (shapes.FAIL, NODE["properties"]["fail"]),
        (shapes.SUCCEED, NODE["properties"]["succeed"]),
        (shapes.FOR_EACH, NODE["properties"]["forEach"]),
        (shapes.REPEAT, NODE["properties"]["repeat"]),
        (shapes.UNDO, NODE["properties"]["undo"]),
        (shapes.TASK, NODE["properties"]["undo"]["properties"]["task"]),
        (shapes.SUBFLOW, SUBFLOW),
        (shapes.NODE, SUBFLOW["properties"]["nodes"]["items"]),
        (shapes.FINALLY, DEFINITION["properties"]["finally"]),
        (shapes.FINALLY, SUBFLOW["properties"]["finally"]),
        (shapes.RUN, RUN),
        (shapes.DEFINITION_REF, RUN["properties"]["definitionRef"]),
        (shapes.CANCEL, RUN["properties"]["cancel"]),
        (shapes.SIGNAL, RUN["properties"]["signals"]["items"]),
    ],
)
def test_fields(shape: Shape, schema: dict[str, Any]) -> None:
    later = {name for owner, name in LATER if owner is shape}
    assert {*schema["properties"]} == shape.names | later
    assert not shape.names & later


def properties(schema: Any) -> Any:
    return schema["properties"]


def whole(pattern: re.Pattern[str]) -> str:
    """A pattern as a CRD writes it."""
    return "^" + pattern.pattern.replace(r"\Z", "$")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (properties(DEFINITION)["nodes"]["maxItems"], limits.NODES),
        (properties(DEFINITION)["description"]["maxLength"], limits.DESCRIPTION),
        (properties(DEFINITION)["timeout"]["maxLength"], LONGEST_TEXT),
        (properties(DEFINITION)["timeout"]["pattern"], PATTERN),
        (properties(NODE)["description"]["maxLength"], limits.NODE_DESCRIPTION),
        (properties(NODE)["dependsOn"]["maxItems"], limits.DEPENDS_ON),
        (properties(NODE)["when"]["maxLength"], limits.CONDITION),
        (properties(NODE)["timeout"]["maxLength"], limits.SHORT),
        (properties(NODE)["retry"]["maxItems"], limits.TIERS),
        (properties(NODE)["onError"]["maxItems"], limits.ROUTES),
        (properties(NODE)["switch"]["maxItems"], limits.CASES),
        (properties(NODE)["name"]["pattern"], whole(names.NAME)),
        (properties(properties(NODE)["task"])["type"]["pattern"], whole(names.TASK_TYPE)),
        (properties(properties(NODE)["task"])["queue"]["pattern"], whole(names.QUEUE)),
        (properties(SIGNAL)["id"]["pattern"], whole(names.SIGNAL_IDENTITY.pattern)),
        (properties(SIGNAL)["id"]["maxLength"], names.SIGNAL_IDENTITY.longest),
        (properties(SIGNAL)["name"]["pattern"], whole(names.SIGNAL_NAME.pattern)),
        (properties(SIGNAL)["name"]["maxLength"], names.SIGNAL_NAME.longest),
        (properties(properties(RUN)["cancel"])["reason"]["pattern"], whole(names.REASON.pattern)),
        (properties(properties(RUN)["cancel"])["reason"]["maxLength"], names.REASON.longest),
        (properties(RUN)["tags"]["items"]["pattern"], whole(names.TAG.pattern)),
        (properties(RUN)["tags"]["items"]["maxLength"], names.TAG.longest),
        (properties(properties(NODE)["task"])["queue"]["maxLength"], names.QUEUE_NAME.longest),
        (properties(properties(RUN)["definitionRef"])["name"]["pattern"], whole(names.OBJECT_NAME)),
        (properties(properties(RUN)["definitionRef"])["name"]["maxLength"], names.OBJECT.longest),
        (properties(EVENT)["name"]["maxLength"], limits.SHORT),
        (properties(properties(NODE)["workflow"])["name"]["pattern"], whole(names.OBJECT_NAME)),
        (properties(properties(NODE)["workflow"])["version"]["maximum"], limits.VERSION),
        (properties(properties(NODE)["workflow"])["subflow"]["pattern"], whole(names.NAME)),
        (properties(properties(NODE)["fail"])["type"]["pattern"], whole(error_types.PATTERN)),
        (properties(properties(NODE)["fail"])["type"]["maxLength"], error_types.LONGEST),
        (properties(properties(NODE)["fail"])["message"]["maxLength"], limits.MESSAGE),
        (properties(FOR_EACH)["as"]["pattern"], whole(names.NAME)),
        (properties(FOR_EACH)["maxParallel"]["maximum"], limits.PARALLEL),
        (properties(FOR_EACH)["maxFailures"]["maximum"], limits.PARALLEL),
        (properties(FOR_EACH)["maxFailures"]["pattern"], "^" + PERCENT.pattern.replace(r"\Z", "$")),
        (properties(FOR_EACH)["joinCount"]["maximum"], limits.PARALLEL),
        (properties(properties(NODE)["repeat"])["maxIterations"]["maximum"], limits.ITERATIONS),
        (properties(properties(NODE)["repeat"])["until"]["maxLength"], limits.CONDITION),
        (properties(properties(NODE)["repeat"])["collect"]["maxLength"], limits.CONDITION),
        (properties(properties(NODE)["repeat"])["delay"]["maxLength"], limits.SHORT),
        (properties(DEFINITION)["subflows"]["maxItems"], limits.SUBFLOWS),
        (properties(SUBFLOW)["nodes"]["maxItems"], limits.NODES),
        (properties(properties(DEFINITION)["finally"])["nodes"]["maxItems"], limits.FINALLY_NODES),
        (properties(properties(SUBFLOW)["finally"])["nodes"]["maxItems"], limits.FINALLY_NODES),
        (properties(RUN)["cancelNodes"]["maxItems"], limits.CANCEL_NODES),
        (properties(RUN)["cancelNodes"]["items"]["pattern"], whole(names.NAME)),
        (properties(properties(NODE)["retry"]["items"])["match"]["items"]["pattern"], whole(error_types.PATTERN)),
        (properties(properties(NODE)["onError"]["items"])["match"]["items"]["maxLength"], error_types.LONGEST),
        (properties(EVENT)["anyOf"]["maxItems"], limits.ALTERNATIVES),
    ],
)
def test_bounds(theirs: object, ours: object) -> None:
    assert theirs == ours
