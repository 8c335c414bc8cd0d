"""The nodes of a run in the order of its definition, stage by stage, as a status lists them.

Invariant: what people look for first comes first while there is room for some nodes only, so that shortening the
list leaves those; the order of the definition is given to what is left.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from partita.domain.errors import PartitaError
from partita.domain.model import Definition
from partita.domain.state.rows import NodeState, Stage, is_undo
from partita.engine.engine import Engine
from partita.engine.projection import NODES_SHOWN, NodeSummary, RunSummary

log = logging.getLogger(__name__)

_STAGES = (Stage.MAIN, Stage.UNDO, Stage.FINALLY)


async def flow_of(engine: Engine, run: RunSummary) -> Definition | None:
    """What a run executes; None where it cannot be read now, since a status is worth more than its order."""
    try:
        version = await engine.definitions.exact(run.object.namespace, run.definition, run.version)
    except PartitaError as error:
        log.debug("definition of run %s: %s", run.run_id, error)
        return None
    return version.definition


def complete(nodes: Sequence[NodeSummary], flow: Definition) -> tuple[NodeSummary, ...]:
    """These nodes, and behind them those that nothing has happened to, as many as a status has room for."""
    known = {node.name for node in nodes}
    rest = [name for name in (*flow.nodes, *_last(flow)) if name not in known]
    pending = (NodeSummary(name=name, state=NodeState.PENDING.value, attempt=0, message="") for name in rest)
    return (*nodes, *pending)[: max(NODES_SHOWN, len(nodes))]


def staged(nodes: Sequence[NodeSummary], flow: Definition | None) -> list[tuple[NodeSummary, Stage]]:
    """Each node with its stage, in the order of the definition; what is undone stands in the opposite order."""
    found = [(node, _stage(node.name, flow)) for node in nodes]
    if flow is None:
        return sorted(found, key=lambda pair: _STAGES.index(pair[1]))
    places = {name: place for place, name in enumerate((*flow.nodes, *_last(flow)))}

    def order(pair: tuple[NodeSummary, Stage]) -> tuple[int, int]:
        node, stage = pair
        place = places.get(node.name.partition("~")[0], len(places))
        return _STAGES.index(stage), -place if stage is Stage.UNDO else place

    return sorted(found, key=order)


def _stage(name: str, flow: Definition | None) -> Stage:
    if is_undo(name):
        return Stage.UNDO
    return Stage.FINALLY if flow is not None and name in _last(flow) else Stage.MAIN


def _last(flow: Definition) -> Sequence[str]:
    return tuple(flow.finally_.nodes) if flow.finally_ is not None else ()
