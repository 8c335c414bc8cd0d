"""Database roles: one for coordinators, with their planner options, and one for reads.

Purpose: behind a proxy that pools by transaction, options that belong to the role cost no round trip and cannot get
lost. Invariant: applying the roles again changes nothing; neither role owns anything or may change the schema; what
only a session with prepared statements needs is left to it, and taken from roles that had it.
Trade-off: roles belong to the whole server, so that making them needs the right CREATEROLE; where it is missing,
coordinators set their options themselves (``database.planner`` = auto) and everything runs under one role.
"""

from __future__ import annotations

from dataclasses import dataclass

from partita.settings import DatabaseSettings
from partita.store.database import OPTIONS, PREPARED, Connection, Dedicated
from partita.store.errors import boundary
from partita.store.migrations import direct
from partita.store.sql import Sql


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of the two roles."""

    coordinator: str
    reader: str

    @classmethod
    def of(cls, settings: DatabaseSettings) -> Roles:
        """The usual names: ``partita_coordinator`` and ``partita_reader`` for the schema partita."""
        return cls(f"{settings.schema}_coordinator", f"{settings.schema}_reader")


async def apply(settings: DatabaseSettings, roles: Roles | None = None) -> tuple[str, ...]:
    """Make the roles, grant what they need and set their options; returns the names of new ones.

    Existing roles of these names are used as they are. Raises UnavailableError when the right to do so is missing.
    """
    roles = roles or Roles.of(settings)
    sql = Sql(settings.schema)
    dedicated = Dedicated(direct(settings), "partita/roles", planner=False)
    try:
        with boundary():
            async with dedicated.transaction() as connection:
                made = [name for name in (roles.coordinator, roles.reader) if await _make(connection, sql, name)]
                await connection.execute(sql("role_grant_coordinator", role=roles.coordinator))
                await connection.execute(sql("role_grant_reader", role=roles.reader))
                await _set_options(connection, sql, roles)
    finally:
        await dedicated.close()
    return tuple(made)


async def _make(connection: Connection, sql: Sql, name: str) -> bool:
    if await connection.fetchval(sql("role_exists"), name):
        return False
    await connection.execute(sql("role_create", role=name))
    return True


async def _set_options(connection: Connection, sql: Sql, roles: Roles) -> None:
    database = await connection.fetchval("SELECT current_database()")
    for option, value in OPTIONS:
        text = sql("role_set", role=roles.coordinator, database=database, option=option, value=value)
        await connection.execute(text)
    await connection.execute(sql("role_reset", role=roles.coordinator, database=database, option=PREPARED[0]))
    await connection.execute(sql("role_read_only", role=roles.reader, database=database))
