"""The log of operator and workers: lines that a person can read.

Invariant: a line of an attempt names its run, node and number, whoever wrote it, so that a run can be found in the logs
of many workers. Trade-off: text and not JSON; whoever collects fields gives the process a configuration of their own.
"""

from __future__ import annotations

import logging
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OF_ATTEMPT: Final = " (run %(run_id)s, node %(node)s, attempt %(attempt)s)"


class Lines(logging.Formatter):
    """Formats a record; fields that ``TaskContext.log`` adds stand behind the message."""

    def __init__(self) -> None:
        super().__init__(FORMAT)
        self._of_attempt = logging.Formatter(FORMAT + _OF_ATTEMPT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's own name
        """The line without the traceback, which stands below it."""
        if hasattr(record, "run_id"):
            return self._of_attempt.formatMessage(record)
        return super().formatMessage(record)


def begin(level: str) -> None:
    """Log to standard error from this level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    logging.basicConfig(level=level, handlers=[handler])
