"""Whether an object does not exist: the one question on which runs are cancelled and change hands.

Invariant: yes is only said after the API server has; an error, a missing permission included, is no answer and leaves
as an error.
"""

from __future__ import annotations

from partita.domain.errors import NotFoundError
from partita.kube.client import KubeClient
from partita.kube.resources import Resource


async def absent(client: KubeClient, resource: Resource, namespace: str, name: str, uid: str = "") -> bool:
    """Whether no object of this name, and of this uid where one is given, exists now."""
    try:
        body = await client.get(resource.path(namespace, name))
    except NotFoundError:
        return True
    return bool(uid) and body["metadata"]["uid"] != uid
