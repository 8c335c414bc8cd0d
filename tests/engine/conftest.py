"""Fixtures of the coordinator's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from partita.engine import Engine
from partita.settings import Settings
from tests.engine.support import connected, opened


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    """An engine of one lane."""
    async with opened(settings) as engine:
        yield engine


@pytest.fixture
async def other(settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    """Somebody else's connection to the same database."""
    async with connected(settings) as connection:
        yield connection
