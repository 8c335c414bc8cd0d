"""Lines of the log of operator and workers."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from partita.cli.logs import Lines
from partita.worker import TaskContext
from tests.worker.support import claimed


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What loggers below ``partita`` write, as the processes format it."""
    text, logger = io.StringIO(), logging.getLogger("partita")
    handler, level = logging.StreamHandler(text), logger.level
    handler.setFormatter(Lines())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield text
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_a_line_of_an_attempt_names_it(written: io.StringIO) -> None:
    task = claimed(attempt=3)
    TaskContext(task).log.info("charged %d", 5)
    expected = f" INFO partita.task.charge-card: charged 5 (run {task.run_id}, node charge, attempt 3)\n"
    assert written.getvalue().endswith(expected)


def test_other_lines_stay_as_they_are_and_tracebacks_follow(written: io.StringIO) -> None:
    error = ValueError("broken")
    logging.getLogger("partita.engine").error("it failed", exc_info=error)
    first, last = written.getvalue().splitlines()
    assert first.endswith(" ERROR partita.engine: it failed")
    assert last == "ValueError: broken"
