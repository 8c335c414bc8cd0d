"""Who uses the command line, as the records of a database name it."""

from __future__ import annotations

import getpass
import os
import platform

_LONGEST = 128


def person() -> str:
    """``user@host``: the database's own audit knows the role alone, which many people may share.

    A user id without a name, as in many containers, is no reason to fail.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{platform.node() or 'unknown'}"[:_LONGEST]
