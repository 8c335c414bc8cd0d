"""A database whose clock can be put forward: what the engine's statements call ``clock_timestamp()`` is replaced.

Names without a schema are looked up in the session's ``search_path``, and a schema that stands before ``pg_catalog``
there wins. The statements of the product qualify tables and no functions, so they read this clock without a change.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import asyncpg

from partita.settings import Settings
from tests.postgres import direct_url

_MAKE = """
CREATE SCHEMA shifted;
CREATE TABLE shifted.moment (ahead interval NOT NULL);
INSERT INTO shifted.moment VALUES ('0');
CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
    AS 'SELECT pg_catalog.clock_timestamp() + (SELECT ahead FROM shifted.moment)';
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = shifted, pg_catalog', current_database());
END $$;
"""


class ShiftedClock:
    """The clock of one database; made before anything of the product connects to it."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection

    @classmethod
    async def of(cls, settings: Settings) -> ShiftedClock:
        """Replace the clock of a database, which goes on as before until it is put."""
        connection = await asyncpg.connect(direct_url(settings))
        await connection.execute(_MAKE)
        return cls(connection)

    async def put(self, moment: datetime) -> None:
        """Let it be that moment now; time goes on from there."""
        await self._connection.execute("UPDATE shifted.moment SET ahead = $1 - pg_catalog.clock_timestamp()", moment)

    async def close(self) -> None:
        """Leave it as it is."""
        await self._connection.close()
