"""The example of CloudNativePG, as far as an API server judges it. Its operator itself is not run.

What its Secrets, names and certificates are like is run by the tests of a database outside the cluster, with the values
of the example.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from e2e.chart.release import CHART, ROOT
from e2e.cluster import PodCluster
from e2e.cluster.waiting import wait_until

EXAMPLE = ROOT / "examples" / "cloudnative-pg"
KIND = Path(__file__).parent / "chart" / "cloudnative-pg-cluster.yaml"
STRICT = ("--dry-run=server", "--validate=strict", "-f", "-")


def established(node: PodCluster) -> bool:
    """Whether the API server serves the kind; `kubectl wait` fails on one that has no conditions yet."""
    states = node.kubectl_json("get", "-f", str(KIND))["status"].get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in states)


def test_the_database_is_what_its_kind_describes(node: PodCluster, node_namespace: str) -> None:
    node.apply(KIND)
    wait_until(lambda: established(node), "the kind is served", seconds=30)
    text = (EXAMPLE / "database.yaml").read_text("utf-8")
    told = node.run_kubectl("create", "-n", node_namespace, *STRICT, stdin=text)
    assert told == "cluster.postgresql.cnpg.io/partita-db created (server dry run)\n"
    node.run_kubectl("delete", "-f", str(KIND))


def test_the_values_name_what_the_database_makes(node: PodCluster, node_namespace: str) -> None:
    database = yaml.safe_load((EXAMPLE / "database.yaml").read_text("utf-8"))["metadata"]["name"]
    values = yaml.safe_load((EXAMPLE / "values.yaml").read_text("utf-8"))["database"]
    assert values["existingSecret"] == {"name": f"{database}-app", "key": "uri"}
    assert values["tls"] == {"mode": "verify-full", "ca": {"secretName": f"{database}-ca", "key": "ca.crt"}}
    arguments = ("-f", str(EXAMPLE / "values.yaml"), "--namespace", node_namespace, "--set", "crds.install=false")
    rendered = node.run_helm("template", "partita", str(CHART), "--skip-tests", *arguments)
    told = node.run_kubectl("create", "-n", node_namespace, *STRICT, stdin=rendered)
    assert "deployment.apps/partita-operator created (server dry run)" in told
