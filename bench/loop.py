"""The event loop that the products' own processes use, for the benchmarks too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on uvloop where there is one, as ``partita worker`` does."""
    try:
        import uvloop  # noqa: PLC0415  # not on every platform
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)
