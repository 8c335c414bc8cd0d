"""A database that is no pod: TLS that checks the server's name, URLs from Secrets, PgBouncer, a URL for migrations.

The Secrets, the Service and the certificate are made as CloudNativePG makes them, so that the values of its example are
what is installed. The tests stand in the order in which they change the release.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from e2e.chart.fixtures import (
    DATABASE,
    DEFINITION,
    HERE,
    OUTSIDE_NAMESPACE,
    POOLER,
    SharedRelease,
)
from e2e.chart.release import CHART, ROOT, Release
from e2e.chart.runs import GO, recorded, runs_of, steps_of, succeed
from e2e.cluster import ClusterError, PodCluster
from e2e.cluster.pki import Authority
from e2e.outside import Pooler, Postgres, pooler
from e2e.outside.network import ADDRESS

EXAMPLE = ("-f", str(ROOT / "examples" / "cloudnative-pg" / "values.yaml"))
NAME = "partita"
"""Of the database and of its owner, as in the example."""
COORDINATOR = "partita_coordinator"
OTHER_NAME = "another-name"
SHORT = ("--wait", "--timeout", "12s")


@dataclass(slots=True)
class External:
    """A release whose database is outside the cluster, and the passwords of its two roles."""

    release: Release
    server: Postgres
    owner_password: str
    coordinator_password: str
    healthy: bool = False

    def uri(self, user: str, host: str, port: int) -> str:
        """URL of the database as a role, by the name of a Service."""
        password = self.owner_password if user == NAME else self.coordinator_password
        return f"postgresql://{user}:{password}@{host}.{OUTSIDE_NAMESPACE}:{port}/{NAME}"

    def secret(self, name: str, **texts: str) -> None:
        """Make a Secret of the namespace."""
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": texts}
        self.release.kubectl("apply", "-f", "-", stdin=json.dumps(made))

    def prepare(self) -> None:
        """Make the namespace with what the example expects, and what the tests put in its place."""
        self.release.prepare()
        for name in (DATABASE, OTHER_NAME):
            self.server.network.expose(OUTSIDE_NAMESPACE, name, 5432)
        self.secret("partita-db-app", uri=self.uri(NAME, DATABASE, 5432))
        self.secret("partita-db-ca", **certificate_of(self.server.authority))
        self.secret("wrong-ca", **certificate_of(self.server.network.authority("wrong")))

    def ensure(self) -> None:
        """Install it with the values of the example, unless that is done."""
        if not self.healthy:
            waiting = ("--wait", "--timeout", "180s")
            values = ("-f", str(self.release.values), *EXAMPLE)
            self.release.helm("upgrade", "--install", "partita", str(CHART), *values, *waiting)
            self.release.kubectl("apply", "-f", str(DEFINITION))
            self.healthy = True

    def sql(self, query: str) -> list[list[str]]:
        """Ask the database, past the network."""
        return self.server.sql(NAME, query)


@pytest.fixture(scope="module")
def external(chart_node: PodCluster, outside: Postgres, shared_release: SharedRelease) -> Iterator[External]:
    """A namespace with what the example expects, and nothing installed yet."""
    shared_release.remove()
    release = Release(chart_node, OUTSIDE_NAMESPACE, HERE / "outside.yaml")
    made = External(release, outside, secrets.token_hex(8), secrets.token_hex(8))
    outside.sql("postgres", f"CREATE ROLE {NAME} LOGIN CREATEROLE PASSWORD '{made.owner_password}'")
    outside.sql("postgres", f"CREATE ROLE {COORDINATOR} LOGIN PASSWORD '{made.coordinator_password}'")
    outside.sql("postgres", f"CREATE DATABASE {NAME} OWNER {NAME}")
    try:
        made.prepare()
        yield made
    finally:
        release.remove()


@pytest.fixture
def installed(external: External) -> External:
    """The release with the values of the example, all ready."""
    external.ensure()
    return external


def certificate_of(authority: Authority) -> dict[str, str]:
    """The Secret's data of an authority."""
    return {"ca.crt": authority.ca.certificate.read_text("utf-8")}


def doctor(release: Release, container: str, *arguments: str) -> str:
    """What `partita doctor` says of the database, in a container of the operator that runs."""
    inside = ("exec", "deploy/partita-operator", "-c", container, "--", "partita", "doctor", "--database-only")
    command = release.node.kubectl_command("-n", release.namespace, *inside, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


def test_a_wrong_authority_is_named_and_an_upgrade_to_the_right_one_heals(external: External) -> None:
    release = external.release
    values = ("-f", str(release.values), *EXAMPLE, "--set", "database.tls.ca.secretName=wrong-ca")
    with pytest.raises(ClusterError, match="partita-operator"):
        release.helm("install", "partita", str(CHART), *values, *SHORT)
    told = release.kubectl("logs", "deploy/partita-operator", "-c", "migrate")
    assert "certificate is refused" in told
    assert "PGSSLROOTCERT" in told
    assert external.sql("SELECT nspname FROM pg_namespace WHERE nspname = 'partita'") == []
    external.ensure()
    assert "fails" not in doctor(release, "operator")


def test_runs_end_over_tls(installed: External) -> None:
    names = [f"tls-{number}" for number in range(5)]
    installed.release.kubectl("apply", "-f", "-", stdin=runs_of("steps", *names))
    succeed(installed.release, *names)
    assert recorded(installed.sql, *names) == steps_of(*names)
    sessions = installed.sql(
        "SELECT DISTINCT ssl, usename FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL"
    )
    assert sessions == [["t", NAME]]


def test_a_server_of_another_name_is_refused(installed: External) -> None:
    told = doctor(installed.release, "operator", "--database-url", installed.uri(NAME, OTHER_NAME, 5432))
    assert "Hostname mismatch" in told


@pytest.fixture(scope="module")
def bouncer(external: External) -> Iterator[Pooler]:
    """PgBouncer before the server, behind a Service and with a Secret of its own."""
    if (missing := pooler.problem()) is not None:
        pytest.skip(missing)
    made = Pooler(external.server, {COORDINATOR: external.coordinator_password})
    try:
        made.start()
        external.server.network.expose(OUTSIDE_NAMESPACE, POOLER, pooler.PORT)
        external.secret("pooler", uri=external.uri(COORDINATOR, POOLER, pooler.PORT))
        yield made
    finally:
        made.stop()


def test_runs_pass_through_pgbouncer_and_migrations_do_not(installed: External, bouncer: Pooler) -> None:
    release = installed.release
    through = ("existingSecret.name=pooler", "existingSecret.key=uri", "pooled=true", "planner=role")
    direct = ("migrations.existingSecret.name=partita-db-app", "migrations.existingSecret.key=uri", "createRoles=true")
    sets = [word for each in (*through, *direct) for word in ("--set", f"database.{each}")]
    release.upgrade(*EXAMPLE, *sets)
    before = bouncer.transactions(NAME)
    names = [f"pooled-{number}" for number in range(10)]
    release.kubectl("apply", "-f", "-", stdin=runs_of("steps", *names))
    release.kubectl("apply", "-f", "-", stdin=runs_of("gate", "pooled-gate"))
    release.wait("wfr/pooled-gate", "jsonpath={.status.waitingFor}")
    release.kubectl("patch", "wfr", "pooled-gate", "--type=json", "-p", GO)
    succeed(release, "pooled-gate", *names)
    assert recorded(installed.sql, *names) == steps_of(*names)
    passed = bouncer.transactions(NAME) - before
    print(f"\n{passed} transactions have passed through PgBouncer")
    assert passed > len(names)
    check_sessions(installed)
    release.kubectl("create", "job", "--from=cronjob/partita-ensure", "ensure-now")
    release.wait("job/ensure-now", "condition=Complete")
    assert "Succeeded" in release.helm("test", "partita", "--timeout", "120s")


def check_sessions(external: External) -> None:
    """The role of the processes comes from PgBouncer alone, and the owner, for migrations, never does."""
    query = "SELECT DISTINCT usename, client_addr = '{}' FROM pg_stat_activity WHERE client_addr IS NOT NULL ORDER BY 1"
    sessions = external.sql(query.format(ADDRESS))
    assert [COORDINATOR, "t"] in sessions
    assert [COORDINATOR, "f"] not in sessions
    assert [NAME, "t"] not in sessions
    owners = external.sql("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'partita'")
    assert owners == [[NAME]]
