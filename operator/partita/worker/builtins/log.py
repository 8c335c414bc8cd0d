"""The task type ``partita.log``: one line in the worker's log, with the attempt's identity.

Invariant: one input is one line of bounded length, whatever characters it holds. Trade-off: the line is the worker's
and is kept where its log is kept; the input is recorded with the run like any other.
"""

from __future__ import annotations

import logging
from typing import Final

from partita.domain.payload import Json, encode
from partita.worker.builtins.inputs import Fields
from partita.worker.context import TaskContext

TYPE: Final = "partita.log"
LONGEST: Final = 4_096
"""Characters of the message, and of the data, that are logged."""
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


async def log(ctx: TaskContext, input: Json) -> None:  # noqa: A002 - the SDK's word
    """Write the line; raises InvalidTaskInputError."""
    fields = Fields(input, ("message", "level", "data"))
    message = fields.text("message", "a text", longest=64 * 1_048_576)
    level = fields.choice("level", tuple(_LEVELS), "info")
    fields.done()
    text = _line(message)
    if fields.has("data"):
        text += f" {_line(encode(fields.value('data'), 'data'))}"
    ctx.log.log(_LEVELS[level], "%s", text)


def _line(text: str) -> str:
    """A text as part of one line, shortened."""
    left_out = len(text) - LONGEST
    kept = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text[:LONGEST])
    return kept if left_out <= 0 else f"{kept}… ({left_out:,} characters left out)"
