"""Takes ready tasks for the worker of this process.

Invariant: every lease that a claim made ends up in a returned task: when the answer was lost, the claim is looked up by
its id before the next one, and what it took is adopted. Claims take no run lock and read no record but the inputs of
what they took. One claimer a process, one claim at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from partita.domain.errors import OutdatedError, UnavailableError
from partita.domain.payload import Payload
from partita.engine.positions import Depth, Plan, Positions, Seen
from partita.engine.requests import PROTOCOL, ClaimedTask
from partita.engine.service import Clock, SystemClock
from partita.store.claims import ClaimAnswer, ClaimQuery, ClaimStore, ReadyGroup
from partita.store.database import Record
from partita.store.sequence import LANES, lane_of
from partita.store.session import LostError

_WIDEST = 8


class ProtocolTooOldError(OutdatedError):
    """The schema demands a newer engine protocol: this process may take no more work."""

    reason = "ProtocolTooOld"


class Claimer:
    """Claims for one worker."""

    def __init__(
        self,
        store: ClaimStore,
        *,
        worker_id: str,
        queues: Sequence[str],
        namespaces: Sequence[str] | None,
        trail_ms: int,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._namespaces = namespaces
        self._clock: Clock = clock or SystemClock()
        lanes = range(LANES) if namespaces is None else map(lane_of, namespaces)
        self._positions = Positions(queues, trail_ms, lanes=lanes)
        self._unknown: list[UUID] = []
        self._spread = 1

    def hint(self) -> None:
        """There is new work: the next claim looks first where there was some before."""
        self._positions.hint()

    def doubt(self, claim_id: UUID) -> None:
        """Tasks may have been leased to this worker under this id: the next claim looks."""
        self._unknown.append(claim_id)

    async def claim(self, slots: int) -> list[ClaimedTask]:
        """Up to ``slots`` tasks; more only when an earlier claim of unknown outcome turns out to have taken some.

        Raises UnavailableError while the database cannot be reached, ProtocolTooOldError when this process is too old.
        """
        found = await self._adopt()
        plan: Plan | None = None
        while len(found) < slots:
            plan = self._next_plan(plan)
            if plan is None:
                break
            found += await self._take(plan, slots - len(found))
            if found:
                break
        return found

    def _next_plan(self, last: Plan | None) -> Plan | None:
        """The first look, and wider ones as long as nothing is found."""
        now = self._clock.monotonic()
        if last is None:
            return self._positions.plan(now)
        if last.depth is Depth.ACTIVE:
            return self._positions.plan(now, wider_than=Depth.ACTIVE)
        if last.depth is Depth.ALL and self._positions.promised(now):
            return self._positions.plan(now, wider_than=Depth.ALL)
        if last.depth is not Depth.BEGINNING and self._positions.exhausted(now):
            return self._positions.plan(now, wider_than=Depth.LOOK_BACK)
        return None

    async def _take(self, plan: Plan, limit: int) -> list[ClaimedTask]:
        claim_id = uuid4()
        window = max(4, -(-limit * self._spread // self._positions.lanes()))
        query = ClaimQuery(
            starts=plan.starts,
            limit=limit,
            window=window,
            claim_id=claim_id,
            worker_id=self._worker_id,
            namespaces=self._namespaces,
            protocol=PROTOCOL,
            deep=plan.deep,
        )
        self._unknown.append(claim_id)
        try:
            answer = await self._store.claim(query)
        except LostError:
            return await self._adopt()
        except UnavailableError:
            self._unknown.remove(claim_id)
            raise
        if not answer.obeyed:
            self._unknown.remove(claim_id)
            raise ProtocolTooOldError("worker: the schema demands a newer engine protocol", hint="update this worker")
        if answer.open:
            self._learn(plan, answer, window, limit)
        tasks = await self._with_inputs(answer.taken)
        self._unknown.remove(claim_id)
        return tasks

    def _learn(self, plan: Plan, answer: ClaimAnswer, window: int, limit: int) -> None:
        taken = [(ReadyGroup(row["queue"], row["lane"], row["priority"]), row["seq"]) for row in answer.taken]
        complete = answer.candidates == len(taken) and answer.candidates < window
        seen = Seen(taken, answer.firsts, answer.position if complete else None)
        self._positions.learn(plan, self._clock.monotonic(), seen)
        contended = len(taken) < min(limit, answer.candidates)
        self._spread = min(self._spread * 2, _WIDEST) if contended else max(self._spread // 2, 1)

    async def _adopt(self) -> list[ClaimedTask]:
        """Tasks of claims whose outcome was unknown, or whose inputs could not be read."""
        adopted: list[ClaimedTask] = []
        while self._unknown:
            claim_id = self._unknown[-1]
            adopted += await self._with_inputs(await self._store.look_up(claim_id))
            self._unknown.remove(claim_id)
        return adopted

    async def _with_inputs(self, rows: Sequence[Record]) -> list[ClaimedTask]:
        if not rows:
            return []
        inputs = await self._store.inputs(rows)
        return [_task(row, text) for row, text in zip(rows, inputs, strict=True)]


def _task(row: Record, text: str) -> ClaimedTask:
    return ClaimedTask(
        run_id=row["run_id"],
        generation=row["generation"],
        node=row["node"],
        index=row["index"],
        attempt=row["attempt"],
        lease_id=row["lease_id"],
        type=row["type"],
        queue=row["queue"],
        namespace=row["namespace"],
        input=Payload.parse(text),
        deadline=row["deadline_at"],
        timeout_ms=row["timeout_ms"],
    )
