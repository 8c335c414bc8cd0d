"""What a cluster's folder says about it, for whoever comes later: `down`, `status`, the keeper.

cluster.json   the provider, the name, and what that provider must know to find its parts again
kubeconfig     an administrator's context
pki/ etcd/ logs/   of the control plane built from source
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from e2e.cluster.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Record:
    """The content of `cluster.json`."""

    provider: str
    name: str
    ports: Mapping[str, int] = field(default_factory=dict)
    pids: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, home: Path) -> Self | None:
        """Read a folder's record; None when there is none; ClusterError when it cannot be understood."""
        path = record_path(home)
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return cls(content["provider"], content["name"], content["ports"], content["pids"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"{path}: not a cluster's record ({error}); try: remove the folder {home}") from error

    def write(self, home: Path) -> None:
        """Replace the folder's record in one step."""
        content = {"provider": self.provider, "name": self.name, "ports": self.ports, "pids": self.pids}
        scratch = record_path(home).with_suffix(".tmp")
        scratch.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        scratch.replace(record_path(home))


def record_path(home: Path) -> Path:
    """Name the record of the cluster in a folder."""
    return home / "cluster.json"


def kubeconfig_path(home: Path) -> Path:
    """Name the kubeconfig of the cluster in a folder."""
    return home / "kubeconfig"
