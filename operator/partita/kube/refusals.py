"""Why a run waits for its definition: it is not there, or it is there and was not accepted.

Invariant: only the words of a refusal change, never whether the run waits. Trade-off: the object is looked at when the
refusal is shown, so that one which is created later, and is invalid, speaks for itself alone.
"""

from __future__ import annotations

from dataclasses import replace

from partita.domain.errors import PartitaError
from partita.domain.manifest import parse_definition
from partita.engine.projection import Refusal
from partita.kube.client import KubeClient
from partita.kube.resources import DEFINITIONS, RUNS
from partita.kube.words import describe, not_accepted


async def not_accepted_yet(client: KubeClient, refusal: Refusal) -> Refusal:
    """The refusal, in better words where the definition exists and is invalid."""
    if not refusal.waiting:
        return refusal
    namespace = refusal.object.namespace
    try:
        run = await client.get(RUNS.path(namespace, refusal.object.name))
        name = run["spec"]["definitionRef"]["name"]
        item = await client.get(DEFINITIONS.path(namespace, name))
    except PartitaError:
        return refusal
    problems = parse_definition(item)[1]
    if not problems:
        return refusal
    words = not_accepted(f"{namespace}/{name}", problems[0])
    return replace(refusal, message=f"{words}; try: {describe(item['metadata'])}")
