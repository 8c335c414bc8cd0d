"""Two installations in some namespaces only, by people without a right in the cluster, on two schemas of one database.

The tests stand in the order in which they leave both: the last one uninstalls one of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from e2e.chart.fixtures import (
    DATABASE,
    DEFINITION,
    HERE,
    SharedRelease,
)
from e2e.chart.release import KINDS, ROOT, Release
from e2e.chart.runs import GO, recorded, runs_of, steps_of
from e2e.cluster import ClusterError, PodCluster
from e2e.outside import Postgres

ROLES = ("get", "clusterroles,clusterrolebindings", "-o", "name")
UNWATCHED = "elsewhere"
OWNER = "tenants"
RUN = "same-name"
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Tenant:
    """A person who may do everything in some namespaces, and nothing in the cluster, and the release of theirs."""

    name: str
    watched: tuple[str, ...]
    release: Release

    @property
    def namespaces(self) -> tuple[str, ...]:
        """All that they may change."""
        return (self.release.namespace, *self.watched)

    @property
    def identity(self) -> tuple[str, ...]:
        """Flags of Helm that make them its user."""
        return ("--kube-as-user", self.name)

    def prepare(self, server: Postgres, password: str) -> None:
        """Make, as an administrator, namespaces with rights, the way to the database and its authority."""
        self.release.prepare()
        for namespace in self.watched:
            self.release.node.run_kubectl("create", "namespace", namespace)
        for namespace in self.namespaces:
            binding = ("create", "rolebinding", "tenant", "--clusterrole=cluster-admin", f"--user={self.name}")
            self.release.node.run_kubectl("-n", namespace, *binding)
        server.network.expose(self.release.namespace, DATABASE, 5432)
        ca = f"--from-file=root.pem={server.authority.ca.certificate}"
        self.release.kubectl("create", "configmap", "company-ca", ca)
        url = f"--from-literal=url=postgresql://{OWNER}:{password}@{DATABASE}:5432/{OWNER}"
        self.release.kubectl("create", "secret", "generic", "database", url)

    def install(self, cluster_uid: str) -> None:
        """Install as this person, with everything in the own schema."""
        values = (
            f"watchNamespaces={{{','.join(self.watched)}}}",
            f"clusterUid={cluster_uid}",
            "crds.install=false",
            f"database.schema={self.name}",
            "database.existingSecret.name=database",
            "database.tls.mode=verify-full",
            "database.tls.ca.configMapName=company-ca",
            "database.tls.ca.key=root.pem",
        )
        self.release.install(*self.identity, *(word for value in values for word in ("--set", value)))


@dataclass(frozen=True, slots=True)
class Apart:
    """Both tenants, and the roles of the cluster that were there before them."""

    node: PodCluster
    server: Postgres
    north: Tenant
    south: Tenant
    roles: frozenset[str]

    @property
    def tenants(self) -> tuple[Tenant, Tenant]:
        """Both."""
        return (self.north, self.south)

    def sql(self, query: str) -> list[list[str]]:
        """Ask the database that they share."""
        return self.server.sql(OWNER, query)

    def kubectl(self, namespace: str, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in a namespace, as an administrator."""
        return self.node.run_kubectl("-n", namespace, *arguments, stdin=stdin, seconds=SECONDS + 20)

    def start(self, namespace: str, definition: str, run: str) -> None:
        """Apply the definitions and a run in a namespace."""
        self.kubectl(namespace, "apply", "-f", str(DEFINITION))
        self.kubectl(namespace, "apply", "-f", "-", stdin=runs_of(definition, run))

    def wait(self, namespace: str, what: str, condition: str) -> None:
        """Wait until an object has a condition."""
        self.kubectl(namespace, "wait", what, f"--for={condition}", f"--timeout={SECONDS}s")


@pytest.fixture(scope="module")
def apart(chart_node: PodCluster, outside: Postgres, shared_release: SharedRelease) -> Iterator[Apart]:
    """Both installations, each ready, and a namespace that neither watches."""
    shared_release.remove()
    password = secrets.token_hex(8)
    outside.sql("postgres", f"CREATE ROLE {OWNER} LOGIN PASSWORD '{password}'")
    outside.sql("postgres", f"CREATE DATABASE {OWNER} OWNER {OWNER}")
    north, south = (
        Tenant(name, watched, Release(chart_node, f"{name}-system", HERE / "outside.yaml"))
        for name, watched in (("north", ("north-a", "north-b")), ("south", ("south-a",)))
    )
    chart_node.apply(ROOT / "crds")
    made = Apart(chart_node, outside, north, south, frozenset(chart_node.run_kubectl(*ROLES).split()))
    try:
        install(made, password)
        yield made
    finally:
        remove(made)


def install(apart: Apart, password: str) -> None:
    """Make the namespaces, and install both at the same time; returns when both are ready."""
    apart.node.run_kubectl("create", "namespace", UNWATCHED)
    for tenant in apart.tenants:
        tenant.prepare(apart.server, password)
    uid = apart.node.run_kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda tenant: tenant.install(uid), apart.tenants))


def remove(apart: Apart) -> None:
    """Remove both with all their namespaces, and the kinds."""
    for tenant in apart.tenants:
        tenant.release.helm("uninstall", "partita", "--ignore-not-found", "--no-hooks")
    apart.node.run_kubectl("delete", "crd", *KINDS, "--timeout=60s", seconds=80)
    namespaces = [UNWATCHED, *(each for tenant in apart.tenants for each in tenant.namespaces)]
    apart.node.run_kubectl("delete", "namespace", *namespaces, "--ignore-not-found", "--timeout=100s", seconds=120)


def test_every_right_belongs_to_a_namespace(apart: Apart) -> None:
    assert set(apart.node.run_kubectl(*ROLES).split()) - apart.roles == set()
    placed = ("get", "roles", "-A", "-l", "app.kubernetes.io/instance=partita", "-o")
    namespaces = apart.node.run_kubectl(*placed, "jsonpath={.items[*].metadata.namespace}").split()
    assert set(namespaces) == {*apart.north.namespaces, *apart.south.namespaces}
    account = "--as=system:serviceaccount:north-system:partita-operator"
    assert apart.kubectl("north-a", "auth", "can-i", "list", "wfr", account) == "yes\n"
    for namespace in ("south-a", UNWATCHED, "south-system"):
        with pytest.raises(ClusterError, match="no"):
            apart.kubectl(namespace, "auth", "can-i", "list", "wfr", account)


def test_runs_end_where_they_are_watched_and_stay_as_they_are_elsewhere(apart: Apart) -> None:
    apart.start(UNWATCHED, "steps", RUN)
    watched = {namespace: tenant for tenant in apart.tenants for namespace in tenant.watched}
    for namespace in watched:
        apart.start(namespace, "steps", RUN)
    for namespace in watched:
        apart.wait(namespace, f"wfr/{RUN}", "condition=Succeeded")
    for kind, name in (("wfr", RUN), ("wfd", "steps")):
        assert apart.kubectl(UNWATCHED, "get", kind, name, "-o", "jsonpath={.status}{.metadata.finalizers}") == ""
    for tenant in apart.tenants:
        told = apart.sql(f"SELECT namespace FROM {tenant.name}.workflow_runs ORDER BY 1")  # noqa: S608 - a name of the tests
        assert told == [[namespace] for namespace in tenant.watched]
        assert recorded(apart.sql, RUN, schema=tenant.name) == sorted(steps_of(RUN) * len(tenant.watched))


def test_each_has_a_leader_and_an_engine_of_its_own(apart: Apart) -> None:
    leaders = set()
    for tenant in apart.tenants:
        tenant.release.wait("wfe/partita", "condition=Ready")
        leaders.add(tenant.release.kubectl("get", "lease", "partita-operator", "-o", "jsonpath={.spec.holderIdentity}"))
        assert tenant.release.kubectl("get", "wfe", "-A", "-o", "name").count("workflowengine") == len(apart.tenants)
    assert len(leaders) == len(apart.tenants)


def test_uninstalling_one_leaves_the_other_alone(apart: Apart) -> None:
    for namespace in ("north-a", "south-a"):
        apart.start(namespace, "gate", "goes-on")
        apart.wait(namespace, "wfr/goes-on", "jsonpath={.status.waitingFor}")
    apart.north.release.uninstall(*apart.north.identity)
    roles = ("get", "roles,rolebindings", "-l", "app.kubernetes.io/instance=partita", "-o", "name")
    assert apart.kubectl("north-a", *roles) == ""
    for namespace in ("north-a", "south-a"):
        apart.kubectl(namespace, "patch", "wfr", "goes-on", "--type=json", "-p", GO)
    apart.wait("south-a", "wfr/goes-on", "condition=Succeeded")
    assert apart.kubectl("north-a", "get", "wfr", "goes-on", "-o", "jsonpath={.status.phase}") == "Running"
