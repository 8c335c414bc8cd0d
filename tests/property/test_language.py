"""The state machine and the naive reference agree on random definitions over the whole language."""

from __future__ import annotations

from random import Random

import pytest

from partita.domain.model import Definition
from tests.property.comparison import differences, disagreement, parsed, realm_of
from tests.property.generator import ALL, Case, generate
from tests.property.minimise import shown
from tests.property.outcome import outcome_of
from tests.property.performance import Performance
from tests.property.profile import CHUNK, chunks
from tests.property.reference import Act, Result
from tests.property.timeless import MORE_TRIES, timeless, unordered
from tests.property.wandering import Wandering

PEACEFUL = ALL - {"racing", "acts", "events", "ends"}
"""Features with which much does not depend on times."""


@pytest.mark.parametrize("first", chunks(1_500))
def test_the_state_machine_agrees_with_the_reference(first: int) -> None:
    compared = 0
    for seed in range(first, first + CHUNK):
        case = generate(seed)
        lines = disagreement(case, sliced=bool(seed % 2))
        assert not lines, _report(seed, case, lines or [])
        compared += lines is not None
    assert compared > CHUNK // 3, "too few cases say anything"


@pytest.mark.parametrize("first", chunks(400))
def test_what_happens_when_does_not_matter_where_it_must_not(first: int) -> None:
    _in_any_order(first, disturb=None)


@pytest.mark.parametrize("first", chunks(300))
def test_suspending_and_resuming_anywhere_changes_no_result(first: int) -> None:
    _in_any_order(first, disturb="pause")


@pytest.mark.parametrize("first", chunks(300))
def test_handing_attempts_back_anywhere_changes_no_result(first: int) -> None:
    _in_any_order(first, disturb="give_back")


@pytest.mark.parametrize("first", chunks(300))
def test_what_comes_twice_or_too_late_changes_nothing(first: int) -> None:
    _in_any_order(first, disturb="repeat")


def _in_any_order(first: int, disturb: str | None) -> None:
    compared = 0
    for seed in range(first, first + CHUNK):
        case = generate(seed, PEACEFUL)
        definition = parsed(case.spec)
        wanted = timeless(case) if definition is not None else None
        if definition is None or wanted is None:
            continue
        lines = differences(_wander(case, definition, seed, disturb), wanted)
        if lines and timeless(case, MORE_TRIES) is None:
            continue
        assert not lines, _report(seed, case, lines)
        compared += 1
    assert compared > CHUNK // 5, "too few cases say anything"


def _wander(case: Case, definition: Definition, seed: int, disturb: str | None) -> Result:
    wandering = Wandering(realm_of(definition, sliced=bool(seed % 2)), case.script, Random(seed))  # noqa: S311  # a test's chance
    wandering.start()
    wandering.wander(disturb=getattr(wandering, disturb) if disturb else None)
    wandering.resume()
    wandering.wander()
    assert wandering.realm.finished, f"seed {seed}: not every run ended: {wandering.unfinished()}"
    found = unordered(outcome_of(wandering.realm))
    assert found is not None
    return found


@pytest.mark.parametrize("first", chunks(500))
def test_cancelling_anywhere_ends_everything_and_leaves_nothing(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case = generate(seed)
        definition = parsed(case.spec)
        if definition is None:
            continue
        random = Random(seed)  # noqa: S311  # a test's chance
        wandering = Wandering(realm_of(definition, sliced=bool(seed % 2)), case.script, random)
        wandering.start()
        wandering.wander(random.randrange(25), disturb=wandering.pause)
        wandering.cancel(now=bool(random.randrange(2)))
        wandering.resume()
        wandering.wander(disturb=wandering.repeat)
        wandering.cancel(now=True)
        wandering.wander()
        _everything_ended(wandering, seed)


def _everything_ended(performance: Performance, seed: int) -> None:
    realm = performance.realm
    alive = [one for one in performance.unfinished() if not _detached(performance, one[0])]
    assert not alive, f"seed {seed}: not every run ended: {alive}"
    assert not realm.inbox
    for store in realm.stores.values():
        if realm.run(store).finished_at is not None:
            assert not [*store.ready, *store.leases, *store.timers, *store.waits]


def _detached(performance: Performance, path: tuple[tuple[str, int, int], ...]) -> bool:
    """Whether a run or an ancestor of it but the root has no parent, so that it is not cancelled with the root."""
    store = performance.store(path)
    return bool(path) and (performance.realm.run(store).parent is None or _detached(performance, path[:-1]))


def _report(seed: int, case: Case, lines: list[str]) -> str:
    return f"seed {seed}:\n" + "\n".join(lines[:8]) + "\n" + shown(case)


def test_the_comparison_can_fail() -> None:
    case = next(one for one in map(generate, range(50)) if disagreement(one) == [])
    definition = parsed(case.spec)
    assert definition is not None
    performance = Performance(realm_of(definition), case.script)
    performance.acts.insert(0, Act(0, "now"))
    performance.play()
    assert disagreement(case) == []
    assert performance.realm.root.run is not None
    assert performance.realm.root.run.status.value == "Cancelled"
