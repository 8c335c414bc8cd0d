"""How kopf remembers what it has handled: by the object's own generation, never by a copy of the spec.

A definition's handler runs when ``metadata.generation`` differs from ``status.observedGeneration``; the handler writes
the latter with everything else, so that one PATCH a generation is all. The trade-off is that changes of labels and
annotations are not seen, which nothing here reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import kopf
from kopf._cogs.structs.bodies import Body, BodyEssence  # the types of an overridden method have no public names
from kopf._cogs.structs.dicts import FieldSpec
from kopf._cogs.structs.patches import Patch

PROGRESS_PREFIX = "kopf.partita.dev"
"""With any other first label kopf would mark every object that it has seen, by a second PATCH, for ever."""


class GenerationStorage(kopf.DiffBaseStorage):
    """Compares generations: the one of the object with the one its status speaks of."""

    def build(self, *, body: Body, extra_fields: Iterable[FieldSpec] | None = None) -> BodyEssence:  # noqa: ARG002  # kopf passes it by name
        """What the object is now."""
        return _essence(body.metadata.get("generation"))

    def fetch(self, *, body: Body) -> BodyEssence | None:
        """What was handled last; None for an object that was never handled."""
        observed = (body.get("status") or {}).get("observedGeneration")
        return None if observed is None else _essence(observed)

    def store(self, *, body: Body, patch: Patch, essence: BodyEssence) -> None:
        """Remember nothing: the handler's own status says it."""


def retry_storage() -> kopf.ProgressStorage:
    """Where kopf notes the retries of a handler: an annotation that is there only while one is being retried."""
    return kopf.AnnotationsProgressStorage(prefix=PROGRESS_PREFIX, v1=False)


def _essence(generation: Any) -> BodyEssence:
    return cast("BodyEssence", {"spec": {"generation": generation}})
