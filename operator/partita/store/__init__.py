"""PostgreSQL: connections, named SQL, migrations, partitions, reads and writes. The only importer of asyncpg.

Invariant: no statement is built from values; SQL stands in named blocks of ``queries/*.sql``, and only quoted
identifiers are substituted into it. Errors leave this package as the tree of ``domain.errors``.
"""
