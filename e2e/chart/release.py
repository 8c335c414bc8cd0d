"""A release of the chart: Helm's commands, kubectl in its namespace, and what its database recorded.

Invariant: an error tells what `kubectl get pods,events` said at that time, since the cluster is gone when it is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster import ClusterError, PodCluster

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "partita"
TASKS = ROOT / "examples" / "tasks.py"
HELD_TASKS = Path(__file__).with_name("held_tasks.py")
KINDS = tuple(f"workflow{kind}.partita.dev" for kind in ("runs", "definitions", "engines"))
READY_SECONDS = 180
RUN_SECONDS = 60
EVENTS_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Release:
    """The release `partita` in a namespace of its own; `values` is its file of values."""

    node: PodCluster
    namespace: str
    values: Path
    helm_program: Path | None = None
    """Helm 4 where none is given."""

    def helm(self, *arguments: str) -> str:
        """Run Helm in the namespace; raises ClusterError with what pods and events said."""
        try:
            return self.node.run_helm("--namespace", self.namespace, *arguments, program=self.helm_program)
        except ClusterError as error:
            raise ClusterError(f"{error}\n{self.explain()}") from error

    def install(self, *arguments: str) -> str:
        """Install the chart and wait until its pods are ready; returns what Helm prints, the notes included."""
        return self.helm("install", "partita", str(CHART), "-f", str(self.values), *self._waiting(), *arguments)

    def upgrade(self, *arguments: str) -> str:
        """Upgrade to the chart with other values and wait until the new pods are ready."""
        return self.helm("upgrade", "partita", str(CHART), "-f", str(self.values), *self._waiting(), *arguments)

    def uninstall(self, *arguments: str) -> None:
        """Uninstall the release and wait until what it made is gone."""
        self.helm("uninstall", "partita", *self._waiting(), *arguments)

    def kubectl(self, *arguments: str, stdin: str | None = None, seconds: float = RUN_SECONDS) -> str:
        """Run kubectl in the namespace; raises ClusterError with what pods and events said."""
        try:
            return self.node.run_kubectl("-n", self.namespace, *arguments, stdin=stdin, seconds=seconds)
        except ClusterError as error:
            raise ClusterError(f"{error}\n{self.explain()}") from error

    def json(self, *arguments: str) -> Any:
        """Run kubectl with `-o json` in the namespace and return the parsed answer."""
        return json.loads(self.kubectl(*arguments, "-o", "json"))

    def wait(self, what: str, condition: str, *arguments: str, seconds: int = RUN_SECONDS) -> None:
        """Wait until an object has a condition, in the words of `kubectl wait --for`."""
        flags = (f"--for={condition}", f"--timeout={seconds}s", *arguments)
        self.kubectl("wait", what, *flags, seconds=seconds + 20)

    def sql(self, query: str) -> list[list[str]]:
        """Ask the embedded database, in its pod; returns the rows as texts."""
        psql = ("psql", "-U", "partita", "-d", "partita", "-v", "ON_ERROR_STOP=1", "-At", "-F", "\t", "-c", query)
        told = self.kubectl("exec", "partita-postgresql-0", "-c", "postgresql", "--", *psql)
        return [line.split("\t") for line in told.splitlines()]

    def explain(self) -> str:
        """Return what pods and events say, the newest events only."""
        try:
            pods = self.node.run_kubectl("-n", self.namespace, "get", "pods", "-o", "wide")
            events = self.node.run_kubectl("-n", self.namespace, "get", "events", "--sort-by=.lastTimestamp")
        except ClusterError as error:
            return f"(and pods cannot be listed: {error})"
        return "\n".join([f"namespace {self.namespace}:", pods, *events.splitlines()[-EVENTS_SHOWN:]])

    def prepare(self) -> None:
        """Make the namespace, in which only pods of the standard `restricted` may run, and the workers' tasks."""
        self.node.run_kubectl("create", "namespace", self.namespace)
        enforced = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn")]
        self.node.run_kubectl("label", "namespace", self.namespace, *enforced)
        files = (f"--from-file=shop_tasks.py={TASKS}", f"--from-file={HELD_TASKS}")
        self.kubectl("create", "configmap", "shop-tasks", *files)

    def remove(self) -> None:
        """Remove the namespace with everything in it, and the kinds with every object; returns when they are gone.

        Pods are killed, since those whose database goes with them would look for it as long as they may.
        """
        self.helm("uninstall", "partita", "--ignore-not-found", "--no-hooks")
        self.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
        self.node.run_kubectl("delete", "crd", *KINDS, "--ignore-not-found", "--timeout=60s", seconds=80)
        self.node.run_kubectl("delete", "namespace", self.namespace, "--timeout=100s", seconds=120)

    @staticmethod
    def _waiting() -> tuple[str, ...]:
        return ("--wait", "--timeout", f"{READY_SECONDS}s")
