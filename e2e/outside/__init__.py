"""A database that is no pod, as most installations have: Debian's PostgreSQL and PgBouncer, both with TLS.

They are processes of this machine in the network of a node, and pods reach them by Services without a selector.
"""

from e2e.outside.network import Network
from e2e.outside.pooler import Pooler
from e2e.outside.postgres import Postgres

__all__ = ["Network", "Pooler", "Postgres"]
