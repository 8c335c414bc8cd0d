"""What one operator process is told besides the settings, which all processes share.

Invariant: nothing here changes what the operator does to objects; it says where the process runs and under which name.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorOptions:
    """Where a process finds its cluster, its name in the Lease, and where its probes listen."""

    kubeconfig: Path | None = None
    """None takes the pod's service account, else ``KUBECONFIG``."""
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{secrets.token_hex(4)}")
    """Name in the Lease; new at every start, so that a restarted process is not mistaken for its predecessor."""
    former: str = ""
    """Name under which this process led before, and of which nothing is left; its Lease need not be waited for."""
    health_host: str = "127.0.0.1"
    health_port: int = 0
    """Port of the probes; 0 serves none."""
    pod_namespace: str = field(default_factory=lambda: os.environ.get("POD_NAMESPACE", ""))
    pod_name: str = field(default_factory=lambda: os.environ.get("POD_NAME", ""))
    """The pod that this process runs in, which the leader labels; empty outside a cluster."""
    before_write: Callable[[], Awaitable[None]] | None = None
    """Called before every status patch; a place for fault tests to strike."""
