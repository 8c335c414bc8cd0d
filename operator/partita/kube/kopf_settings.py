"""kopf's settings: bounded watches, no events or annotations behind our back, and a quiet log.

``worker_limit`` and ``idle_timeout`` belong together: a handler's slot stays taken for the idle time after its event,
so that a small limit with kopf's default of 5 s would let few objects through a second. Where the namespaces are named,
kopf looks for neither namespaces nor CRDs that come and go: both are rights in the cluster, and without them it would
ask eight times, for twenty seconds, before it watched anything. The trade-off is that CRDs which are removed and made
again need a restart there.
"""

from __future__ import annotations

import logging

import kopf

from partita.kube.storage import GenerationStorage, retry_storage
from partita.settings import Settings

IDLE_SECONDS = 0.2


def kopf_settings(settings: Settings) -> kopf.OperatorSettings:
    """Settings for one operator."""
    made = kopf.OperatorSettings()
    made.watching.server_timeout = 300
    made.watching.client_timeout = 330
    made.watching.connect_timeout = 10
    made.watching.inactivity_timeout = 70
    made.watching.chunk_size = 500
    made.networking.request_timeout = 30
    made.networking.connect_timeout = 10
    made.networking.error_backoffs = (0.2, 0.5, 1, 2, 3, 5, 8)
    made.scanning.disabled = bool(settings.operator.watch_namespaces)
    made.queueing.worker_limit = max(settings.operator.worker_limit, settings.engine.batch_size)
    made.queueing.idle_timeout = IDLE_SECONDS
    made.queueing.exit_timeout = 2.0
    made.execution.default_backoff = 5
    made.posting.enabled = False
    made.posting.loggers = False
    made.posting.level = logging.WARNING
    made.persistence.finalizer = "kopf.partita.dev/unused"
    made.persistence.diffbase_storage = GenerationStorage()
    made.persistence.progress_storage = retry_storage()
    made.process.ultimate_exiting_timeout = None
    return made


def quiet_logs() -> None:
    """Let kopf report what went wrong, and neither every object that went right nor every try of a request.

    While the API server is away, each watch would say so at every try; the duties say it once.
    """
    logging.getLogger("kopf").setLevel(logging.WARNING)
    for name in ("watching", "fetching", "scanning"):
        logger = logging.getLogger(f"kopf._cogs.clients.{name}")
        logger.filters = [_is_news]


def _is_news(record: logging.LogRecord) -> bool:
    text = str(record.msg)
    return not (text.startswith("Request attempt") and " will retry: " in text)
