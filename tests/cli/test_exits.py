"""Every error of ours has an exit code that says what to do; only a defect says defect."""

from __future__ import annotations

import pytest

from partita.cli.exits import Exit, exit_code
from partita.domain import errors
from partita.domain.errors import EngineError, InvalidError, OutdatedError, PartitaError
from partita.engine.claims import ProtocolTooOldError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PartitaError)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {PartitaError, EngineError}])
def test_only_a_defect_exits_as_one(kind: type[PartitaError]) -> None:
    error = kind("x", ()) if issubclass(kind, InvalidError) else kind("x")
    assert exit_code(error) is not Exit.DEFECT


def test_a_program_that_is_too_old_conflicts_with_the_schema() -> None:
    assert exit_code(OutdatedError("x")) is Exit.CONFLICT
    assert exit_code(ProtocolTooOldError("x")) is Exit.CONFLICT
    assert exit_code(EngineError("x")) is Exit.DEFECT
