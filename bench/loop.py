"""The event loop that the products' own processes use, for the benchmarks too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from partita import collector

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as ``partita worker`` does: on uvloop where there is one, with its garbage collector."""
    collector.calm()
    try:
        import uvloop  # noqa: PLC0415  # not on every platform
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)
