"""The API server as the CRD tests see it: objects go in through kubectl, answers come out as text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.cluster.contract import Cluster
from e2e.cluster.errors import ClusterError
from tests.kube.crd_objects import Object


@dataclass(frozen=True, slots=True)
class Api:
    """kubectl in one namespace. Methods that return nothing raise ClusterError when the API server refuses."""

    cluster: Cluster
    namespace: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in the namespace and return what it prints."""
        return self.cluster.run_kubectl("--namespace", self.namespace, *arguments, stdin=stdin)

    def create(self, obj: Object) -> None:
        """Create an object."""
        self.kubectl("create", "-f", "-", stdin=json.dumps(obj))

    def accepts(self, obj: Object) -> None:
        """Assert that an object would be created, without creating it."""
        self.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(obj))

    def refuses(self, obj: Object, *expected: str) -> None:
        """Assert that an object would not be created and that the answer holds each expected text."""
        with pytest.raises(ClusterError) as refusal:
            self.accepts(obj)
        _holds(refusal.value, expected)

    def get(self, resource: str, name: str) -> Any:
        """Return an object."""
        return json.loads(self.kubectl("get", resource, name, "-o", "json"))

    def merge(self, resource: str, name: str, patch: Object, *flags: str) -> None:
        """Merge-patch an object."""
        self.kubectl("patch", resource, name, "--type=merge", "-p", json.dumps(patch), *flags)

    def refuses_merge(self, resource: str, name: str, patch: Object, *expected: str) -> None:
        """Assert that a merge patch is refused and that the answer holds each expected text."""
        with pytest.raises(ClusterError) as refusal:
            self.merge(resource, name, patch, "--dry-run=server")
        _holds(refusal.value, expected)

    def json_patch(self, resource: str, name: str, *operations: Object) -> None:
        """Apply a JSON patch to an object."""
        self.kubectl("patch", resource, name, "--type=json", "-p", json.dumps(operations))

    def refuses_json_patch(self, resource: str, name: str, operation: Object, *expected: str) -> None:
        """Assert that a JSON patch of one operation is refused and that the answer holds each expected text."""
        with pytest.raises(ClusterError) as refusal:
            self.json_patch(resource, name, operation)
        _holds(refusal.value, expected)

    def set_status(self, resource: str, name: str, **status: Any) -> None:
        """Merge into an object's status, through the status subresource."""
        self.merge(resource, name, {"status": status}, "--subresource=status")


def _holds(refusal: ClusterError, expected: tuple[str, ...]) -> None:
    for text in expected:
        assert text in str(refusal)
