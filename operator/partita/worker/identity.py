"""A worker's id: new at every start, so that a lease names exactly one life of one process."""

from __future__ import annotations

import os
import socket

from partita.minting import new_id


def new_worker_id() -> str:
    """An id for a worker that starts now, in this process: host, process and a time-ordered random part.

    It is made when a worker starts and not when it is built, so that forks of one process get ids of their own.
    """
    return f"{socket.gethostname()[:63]}/{os.getpid()}/{new_id()}"
