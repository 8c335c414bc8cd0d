"""Names and paths of the three kinds, of leases and of what else the operator touches in the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GROUP: Final = "partita.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
FIELD_MANAGER: Final = "partita"
ENGINE_NAME: Final = "partita"
"""The one name that a WorkflowEngine may have."""
LEASE_NAME: Final = "partita-operator"


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object and where the API serves it."""

    base: str
    """Path of the group and version, such as ``/apis/partita.dev/v1alpha1``."""
    plural: str
    kind: str

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of one object, of all in a namespace, or of all in the cluster (for what is left empty)."""
        scope = f"/namespaces/{namespace}" if namespace else ""
        parts = [self.base + scope, self.plural, name, subresource]
        return "/".join(part for part in parts if part)


DEFINITIONS: Final = Resource(f"/apis/{GROUP}/{VERSION}", "workflowdefinitions", "WorkflowDefinition")
RUNS: Final = Resource(f"/apis/{GROUP}/{VERSION}", "workflowruns", "WorkflowRun")
ENGINES: Final = Resource(f"/apis/{GROUP}/{VERSION}", "workflowengines", "WorkflowEngine")
LEASES: Final = Resource("/apis/coordination.k8s.io/v1", "leases", "Lease")
NAMESPACES: Final = Resource("/api/v1", "namespaces", "Namespace")
PODS: Final = Resource("/api/v1", "pods", "Pod")
EVENTS: Final = Resource("/api/v1", "events", "Event")
