"""Words that kubectl's own completion offers after ``kubectl partita``: the program ``kubectl_complete-partita``.

kubectl calls it with the words so far, the last of which is incomplete, and reads one candidate a line, with its
description behind a tab, and at the end a number that says whether names of files are offered besides. Invariant: what
is printed is candidates, each in one line, and nothing else. Trade-off: a process a key press, a third of a second.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from typing import Final

from partita.cli.connect import PLUGIN

FILES_TOO: Final = 0
NO_FILES: Final = 4
"""What kubectl's shell code calls its directives."""
_TAKE_FILES: Final = frozenset({"submit", "lint"})
_ASK: Final = {
    f"_{PLUGIN.replace('-', '_').upper()}_COMPLETE": "complete_fish",
    "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    "COLUMNS": "10000",  # a description that is folded would look like a candidate
}
"""How the application is asked for candidates in the form that kubectl reads."""


def main() -> None:
    """Entry point of ``kubectl_complete-partita``."""
    words = sys.argv[1:] or [""]
    sys.argv = [PLUGIN]  # before the commands are imported: the plugin has fewer than partita
    os.environ |= _ASK | {"_TYPER_COMPLETE_ARGS": _line(words)}
    from partita.cli.main import build  # noqa: PLC0415  # see above

    with suppress(SystemExit):
        build()(prog_name=PLUGIN)
    files = bool(_TAKE_FILES & set(words[:1])) and len(words) > 1 and not words[-1].startswith("-")
    print(f":{FILES_TOO if files else NO_FILES}")


def _line(words: list[str]) -> str:
    """The words as a shell would hold them; a blank at the end says that the next one has not begun."""
    *before, last = words
    return f"{shlex.join([PLUGIN, *before])} {shlex.quote(last) if last else ''}"
