"""A worker as a process of its own, with the tasks of ``fault_tasks``; settings come from the environment."""

from __future__ import annotations

import asyncio
import logging
import os

from partita.settings import Settings
from partita.worker.process import exit_process, serve
from tests.faults.fault_tasks import app

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    exit_process(asyncio.run(serve(Settings.load(os.environ), app)))
