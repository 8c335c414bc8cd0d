"""What is told of the WorkflowEngine as Events: a new leader, and that the database was lost or is back.

Invariant: it follows from the status before and after, so that whatever stands in the status already is not told again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from partita.kube.events import News
from partita.kube.resources import ENGINES


def engine_news(metadata: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[News]:
    """The news that a change of status makes."""
    epoch = after["epoch"]
    if before.get("epoch") != epoch:
        yield _news(metadata, "LeaderChanged", f"{after['leader']} leads term {epoch}", key=str(epoch))
    old, new = (_synced(status) for status in (before, after))
    key = f"{epoch}/{new.get('lastTransitionTime')}"
    if new.get("status") == "False" and old.get("status") != "False":
        yield _news(metadata, "DatabaseLost", str(new.get("message")), warning=True, key=key)
    elif new.get("status") == "True" and old.get("status") == "False":
        yield _news(metadata, "DatabaseRecovered", "the database answers again", key=key)


def _synced(status: Mapping[str, Any]) -> Mapping[str, Any]:
    conditions = status.get("conditions") or ()
    return next((each for each in conditions if each["type"] == "Synced"), {})


def _news(metadata: Mapping[str, Any], reason: str, message: str, *, key: str, warning: bool = False) -> News:
    return News(
        kind=ENGINES.kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        reason=reason,
        message=message,
        key=key,
        warning=warning,
    )
