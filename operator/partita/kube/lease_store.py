"""The Lease object in the Kubernetes API."""

from __future__ import annotations

from typing import Any

from partita.domain.payload import Json
from partita.kube.client import KubeClient
from partita.kube.resources import LEASE_NAME, LEASES


class KubeLeaseStore:
    """Reads and writes the operator's Lease; see ``lease.LeaseStore``."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def load(self) -> dict[str, Any]:
        """The present object. Raises NotFoundError."""
        return await self._client.get(LEASES.path(self._namespace, LEASE_NAME))

    async def save(self, body: Json) -> dict[str, Any]:
        """Create or replace the object; raises ConflictError when someone was faster."""
        if "metadata" in body:
            return await self._client.replace(LEASES.path(self._namespace, LEASE_NAME), body)
        new = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE_NAME, "namespace": self._namespace},
            **body,
        }
        return await self._client.create(LEASES.path(self._namespace), new)
