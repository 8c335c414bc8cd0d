"""Helm as tests call it, and what it renders as objects."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "partita"
CI = tuple(sorted((CHART / "ci").glob("*-values.yaml")))
TRIAL = ("--set", "postgresql.embedded.enabled=true")
KUBERNETES = ("--kube-version", "1.32.0")
"""The oldest that the chart takes; without a cluster each Helm has a default of its own."""
SECONDS = 120
Object = dict[str, Any]


class HelmError(AssertionError):
    """Helm refused; its text is what a person reads."""


@dataclass(frozen=True, slots=True)
class Helm:
    """One program, with configuration and caches of its own."""

    program: Path
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str) -> str:
        """Run it and return what it prints; raises HelmError."""
        folders = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [str(self.program), *arguments],
            env={**os.environ, "KUBECONFIG": os.devnull, **folders, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        if done.returncode:
            raise HelmError(done.stderr + done.stdout)
        return done.stdout

    def template(self, *arguments: str, release: str = "partita", namespace: str = "partita-system") -> list[Object]:
        """Render the chart; hooks and tests are among the objects."""
        return objects(self("template", release, str(CHART), "--namespace", namespace, *KUBERNETES, *arguments))

    def trial(self, *arguments: str) -> list[Object]:
        """Render it with the embedded database."""
        return self.template(*TRIAL, *arguments)


def objects(text: str) -> list[Object]:
    """The objects of a stream of manifests."""
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]


def of_kind(rendered: list[Object], kind: str, name: str = "") -> list[Object]:
    """Objects of a kind, and of a name where one is given."""
    return [each for each in rendered if each["kind"] == kind and name in ("", each["metadata"]["name"])]


def one(rendered: list[Object], kind: str, name: str) -> Object:
    """The only object of a kind and name."""
    (found,) = of_kind(rendered, kind, name)
    return found


def pod_specs(rendered: list[Object]) -> Iterator[tuple[str, Object]]:
    """Every pod's spec, with the kind and name of what it belongs to."""
    for each in rendered:
        spec = each.get("spec") or {}
        where = f"{each['kind']}/{each['metadata']['name']}"
        if each["kind"] == "Pod":
            yield where, spec
        elif each["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield where, spec["template"]["spec"]
        elif each["kind"] == "CronJob":
            yield where, spec["jobTemplate"]["spec"]["template"]["spec"]


def containers(pod: Object) -> list[Object]:
    """All containers of a pod's spec."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def variables(container: Object) -> dict[str, Any]:
    """Its variables: a value, or where it comes from."""
    found = {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}
    assert len(found) == len(container["env"]), "a variable is named twice"
    return found
