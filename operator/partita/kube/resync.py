"""The comparison of the cluster's objects with the database: finds what the watch did not tell.

Purpose: runs whose object was deleted while nobody watched are cancelled, objects that were never taken in are taken
in, statuses that lag are queued, and what is remembered of vanished objects is forgotten. Invariant: an object
counts as gone only after a *complete* list that began after the row was read, and a GET of its own that says so; and
never are more than a bounded number acted upon at once without a second pass that finds the same. Trade-off: a
deletion that the watch missed is noticed a few minutes late.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from partita.engine.service import TickingService
from partita.kube.absence import absent
from partita.kube.client import KubeClient
from partita.kube.mirror import Mirror
from partita.kube.resources import DEFINITIONS, RUNS, Resource
from partita.store.projection import ProjectionStore

log = logging.getLogger(__name__)

CHUNK = 500


@dataclass(frozen=True, slots=True)
class Missing:
    """An object that the database knows and the list did not show."""

    uid: str
    namespace: str
    name: str
    run_id: UUID | None
    """None for an object that was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What is done about what is found."""

    run_gone: Callable[[str, UUID | None], Awaitable[None]]
    """(uid, run id): cancel the run of an object that is gone; without a run id its refusal is forgotten."""
    run_missed: Callable[[str, str, str], Awaitable[None]]
    """(namespace, name, uid): take in an object that was not taken in."""
    definition_gone: Callable[[str, str], Awaitable[None]]
    """(namespace, name): delete the definition of an object that is gone."""
    forget: Callable[[frozenset[str]], Awaitable[None]]
    """Uids of objects that do not exist any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which rows and objects are this installation's."""

    cluster_uid: str
    engine_id: str
    created_by: str
    """What ``created_by`` of a definition from an object begins with."""
    namespaces: tuple[str, ...]
    """Empty means all."""


class Resync(TickingService):
    """Compares at the start and then every interval."""

    def __init__(
        self,
        client: KubeClient,
        store: ProjectionStore,
        mirror: Mirror,
        actions: Actions,
        scope: Scope,
        *,
        interval_ms: int,
        done: Callable[[], None] | None = None,
    ) -> None:
        """``done`` is called after every complete comparison."""
        super().__init__("resync")
        self._client = client
        self._store = store
        self._mirror = mirror
        self._actions = actions
        self._scope = scope
        self._interval = interval_ms / 1000
        self._call_done = done
        self._suspects: frozenset[str] = frozenset()
        self._untaken: frozenset[str] = frozenset()

    async def tick(self) -> float:
        """One complete comparison. Raises UnavailableError when a list is not complete; it is then tried again."""
        again = await self._runs()
        await self._definitions()
        if self._call_done is not None:
            self._call_done()
        return min(self._interval, 10.0) if again else self._interval

    async def _runs(self) -> bool:
        """Compare the runs; True when a second pass has to confirm what was found."""
        known = await self._known()
        remembered = frozenset(seen.uid for seen in self._mirror)
        present = await self._list(RUNS)
        gone = [row for row in known if row.uid not in present]
        uids = frozenset(missing.uid for missing in gone)
        accepted = confirmed(uids, self._suspects, len(known))
        self._suspects = frozenset() if accepted else uids
        if accepted:
            for missing in gone:
                await self._confirm(missing)
        else:
            log.warning("resync: %d of %d objects seem to be gone; a second pass decides", len(gone), len(known))
        await self._actions.forget(remembered - present.keys())
        await self._take_in(present)
        await self._requeue()
        return not accepted

    async def _known(self) -> list[Missing]:
        """Objects that the database knows, read before the list begins."""
        rows = await self._store.open_runs(self._scope.cluster_uid, self._scope.engine_id)
        known = [Missing(row["cr_uid"], row["namespace"], row["name"], row["run_id"]) for row in rows]
        refused = await self._store.refusals_recorded(self._scope.engine_id)
        known += [Missing(row["cr_uid"], row["cr_namespace"], row["cr_name"], None) for row in refused]
        return [row for row in known if not self._scope.namespaces or row.namespace in self._scope.namespaces]

    async def _list(self, resource: Resource) -> dict[str, Mapping[str, Any]]:
        """Metadata of all objects in the watched namespaces by uid; raises when it cannot be complete."""
        found: dict[str, Mapping[str, Any]] = {}
        for namespace in self._scope.namespaces or ("",):
            async for page in self._client.metadata(resource.path(namespace)):
                found.update((metadata["uid"], metadata) for metadata in page)
        return found

    async def _confirm(self, missing: Missing) -> None:
        if await absent(self._client, RUNS, missing.namespace, missing.name, missing.uid):
            log.info("resync: %s/%s is gone: its run is cancelled", missing.namespace, missing.name)
            await self._actions.run_gone(missing.uid, missing.run_id)

    async def _take_in(self, present: Mapping[str, Mapping[str, Any]]) -> None:
        """Hand over objects that wait for something, and those that two passes found not taken in.

        One pass is not enough, since their events may be on the way (at the start of an operator all of them are).
        """
        untaken = frozenset(uid for uid, metadata in present.items() if self._is_untaken(uid, metadata))
        waiting = frozenset(seen.uid for seen in self._mirror if seen.waiting) & present.keys()
        for uid in sorted((untaken & self._untaken) | waiting):
            await self._actions.run_missed(present[uid]["namespace"], present[uid]["name"], uid)
        self._untaken = untaken

    def _is_untaken(self, uid: str, metadata: Mapping[str, Any]) -> bool:
        seen = self._mirror.get(uid)
        return seen is None or seen.applied < metadata.get("generation", 0)

    async def _requeue(self) -> None:
        """Queue statuses that the object shows in an older revision."""
        shown = [(UUID(seen.run_id), seen.revision) for seen in self._mirror if seen.run_id and not seen.finished_at]
        for start in range(0, len(shown), CHUNK):
            await self._store.requeue(shown[start : start + CHUNK])

    async def _definitions(self) -> None:
        """Delete definitions whose object is gone."""
        rows = await self._store.deployed_definitions(self._scope.created_by)
        known = {(row["namespace"], row["name"]) for row in rows}
        present = {(m["namespace"], m["name"]) for m in (await self._list(DEFINITIONS)).values()}
        for namespace, name in sorted(known - present):
            watched = not self._scope.namespaces or namespace in self._scope.namespaces
            if watched and await absent(self._client, DEFINITIONS, namespace, name):
                await self._actions.definition_gone(namespace, name)


def confirmed(gone: frozenset[str], suspects: frozenset[str], known: int) -> bool:
    """Whether these objects may be believed gone: few enough, or all of them were missing in the pass before, too."""
    return len(gone) <= max(100, known // 5) or gone <= suspects
