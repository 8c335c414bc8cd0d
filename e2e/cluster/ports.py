"""Loopback ports that are free and stay so.

They are drawn below the range that systems hand out for outgoing connections, so that a port survives its server's
restart: another program would have to ask for that very number.
"""

import random
import socket

from e2e.cluster.errors import ClusterError

LOOPBACK = "127.0.0.1"
FIRST, LAST = 20_000, 29_999
TRIES = 100


def free_ports(count: int) -> list[int]:
    """Return different ports that nothing listens on now; raises ClusterError when a hundred draws find too few."""
    drawn = random.sample(range(FIRST, LAST + 1), TRIES)
    found = [port for port in drawn if is_free(port)][:count]
    if len(found) < count:
        raise ClusterError(f"no {count} free ports between {FIRST} and {LAST} on {LOOPBACK}")
    return found


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
