"""The shell around the pure core: the coordinator (group commit), starts, definitions, and the background duties.

Invariant: everything that changes a run goes through ``Engine``, in every process that changes runs. No process is
special and there is no dispatcher; more processes add throughput until PostgreSQL is the limit.
"""

from partita.engine.engine import Engine
from partita.engine.requests import (
    PROTOCOL,
    ClaimedTask,
    CrRef,
    Deployed,
    Offer,
    Report,
    ReportReply,
    StartReply,
    StartRequest,
    Version,
)

__all__ = [
    "PROTOCOL",
    "ClaimedTask",
    "CrRef",
    "Deployed",
    "Engine",
    "Offer",
    "Report",
    "ReportReply",
    "StartReply",
    "StartRequest",
    "Version",
]
