"""What the processes are told: operator, workers and jobs."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from partita.cli.checks import check_file
from partita.settings import Settings
from tests.chart.helm import CHART, CI, Helm, Object, containers, objects, of_kind, one, pod_specs, variables

Everything = dict[str, list[Object]]


def deployment(rendered: list[Object], name: str) -> Object:
    """The pod of a Deployment."""
    return dict(one(rendered, "Deployment", name)["spec"]["template"]["spec"])


def test_every_process_reads_its_variables_without_complaint(rendered: Everything) -> None:
    for file, rendering in rendered.items():
        for where, pod in pod_specs(rendering):
            for container in containers(pod):
                found = variables(container)
                texts = {
                    name: value if isinstance(value, str) else "postgresql://a@b/c" for name, value in found.items()
                }
                texts.pop("PARTITA_OPERATOR_NAMESPACE", None)
                if "postgres" not in container["name"]:
                    assert Settings.load(texts), (file, where)


def test_the_operator(rendered: Everything) -> None:
    pod = deployment(rendered["namespaced-values.yaml"], "partita-operator")
    (operator,), (migrate,) = pod["containers"], pod["initContainers"]
    assert operator["args"] == ["operator", "--health-host", "0.0.0.0", "--health-port", "8080"]  # noqa: S104 - in a pod
    assert migrate["args"] == ["migrate", "--wait", "--accept-newer"]
    found = variables(operator)
    assert found["PARTITA_OPERATOR_WATCH_NAMESPACES"] == "team-a,team-b"
    assert found["PARTITA_OPERATOR_CLUSTER_UID"] == "6f3cb0a3-6b4c-4a51-8d7a-0f0e7c1b2a3d"
    assert found["POD_NAME"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert found["PARTITA_OPERATOR_NAMESPACE"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    assert pod["serviceAccountName"] == "partita-operator"


def test_large_numbers_are_written_whole(rendered: Everything) -> None:
    engine = variables(deployment(rendered["embedded-full-values.yaml"], "partita-operator")["containers"][0])
    assert engine["PARTITA_OPERATOR_ENGINE_SPEC"] == '{"paused":false,"ttlSecondsAfterFinished":31536000}'
    orders = variables(deployment(rendered["everything-values.yaml"], "orders-operator")["containers"][0])
    assert orders["PARTITA_OPERATOR_TTL_AFTER_FINISHED_MS"] == "31536000000"


def test_the_database_of_secrets(rendered: Everything) -> None:
    pod = deployment(rendered["database-secret-values.yaml"], "partita-operator")
    for container in containers(pod):
        found = variables(container)
        for name, secret in (
            ("PARTITA_DATABASE_URL", "partita-db"),
            ("PARTITA_MIGRATIONS_URL", "partita-db-direct"),
            ("PARTITA_DATABASE_READ_URL", "partita-db-standby"),
        ):
            assert found[name] == {"secretKeyRef": {"name": secret, "key": "uri"}}
        assert found["PGSSLMODE"] == "verify-full"
        assert found["PGSSLROOTCERT"] == "/etc/partita/database-ca/ca.crt"
        assert found["PARTITA_DATABASE_POOLED"] == "true"
        mounts = {each["mountPath"] for each in container["volumeMounts"]}
        assert {"/etc/partita/database-ca", "/etc/partita/database-client"} <= mounts
    assert containers(pod)[0]["args"][-1] == "--roles"
    assert of_kind(rendered["database-secret-values.yaml"], "Secret") == []


def test_the_database_of_urls(rendered: Everything, helm: Helm) -> None:
    made = rendered["database-url-values.yaml"]
    secret = one(made, "Secret", "partita-database")
    assert base64.b64decode(secret["data"]["migrations-url"]).decode() == "postgresql://owner:owner@primary.db:5432/app"
    hook = one(made, "Secret", "partita-migrate")
    assert hook["data"] == secret["data"]
    (job,) = one(made, "Job", "partita-migrate")["spec"]["template"]["spec"]["containers"]
    assert variables(job)["PARTITA_MIGRATIONS_URL"]["secretKeyRef"]["name"] == "partita-migrate"
    first, second = (
        one(helm.template("--set", f"database.url={url}"), "Deployment", "partita-operator")["spec"]["template"][
            "metadata"
        ]
        for url in ("postgresql://a@b/c", "postgresql://a@b/d")
    )
    assert first["annotations"] != second["annotations"], "pods that go on with the old URL"


def test_hooks_bring_what_they_need(rendered: Everything) -> None:
    for file, objects_ in rendered.items():
        for job in of_kind(objects_, "Job"):
            metadata = job["metadata"]
            assert metadata["annotations"]["helm.sh/hook"] == "pre-upgrade"
            account = one(objects_, "ServiceAccount", job["spec"]["template"]["spec"]["serviceAccountName"])
            assert account["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade", file
            assert int(account["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0


def test_an_embedded_database_that_is_not_there_yet_is_not_migrated_by_a_hook(helm: Helm) -> None:
    assert of_kind(helm.trial(), "Job") == []
    assert of_kind(helm.template("--set", "database.url=postgresql://a@b/c"), "Job") != []


def test_workers(rendered: Everything) -> None:
    made = rendered["workers-values.yaml"]
    shop = deployment(made, "partita-worker-shop")
    (container,) = shop["containers"]
    assert container["image"] == "registry.example.com/shop:2"
    assert container["args"] == [
        "worker", "shop_tasks:app", "--queue", "default", "--queue", "payments", "--namespace", "shop", "--slots", "32",
    ]  # fmt: skip
    assert one(made, "Deployment", "partita-worker-shop")["spec"]["replicas"] == 3
    found = variables(container)
    assert (found["PARTITA_WORKER_STOP_GRACE_MS"], found["PARTITA_WORKER_LEASE_MS"]) == ("120000", "60000")
    assert found["PARTITA_WORKER_HTTP_ALLOWED_TARGETS"] == "*.internal.example.com,10.0.0.0/8"
    assert shop["serviceAccountName"] == "shop"
    (wait,) = shop["initContainers"]
    assert wait["args"] == ["doctor", "--database-only", "--wait", "300"]
    assert wait["image"].startswith("ghcr.io/partita/partita:")
    (constraint,) = shop["topologySpreadConstraints"]
    assert constraint["labelSelector"]["matchLabels"]["partita.dev/worker"] == "shop"


def test_workers_serve_the_probes_that_the_kubelet_asks(rendered: Everything) -> None:
    made = rendered["workers-values.yaml"]
    for name, place, port in (("plain", "0.0.0.0:8080", 8080), ("shop", "[::]:9090", 9090)):
        (container,) = deployment(made, f"partita-worker-{name}")["containers"]
        assert variables(container)["PARTITA_WORKER_HEALTH_BIND"] == place
        assert container["ports"] == [{"name": "health", "containerPort": port, "protocol": "TCP"}]
        paths = [container[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")]
        assert paths == [{"path": path, "port": "health"} for path in ("/livez", "/livez", "/readyz")]
    (custom,) = deployment(made, "partita-worker-custom")["containers"]
    assert "ports" not in custom
    assert "PARTITA_WORKER_HEALTH_BIND" not in variables(custom)
    assert custom["livenessProbe"] == {"httpGet": {"path": "/live", "port": 9000}}


def test_one_probe_can_be_replaced_or_all_left_out(helm: Helm) -> None:
    own = {"tcpSocket": {"port": "health"}}
    workers = {"plain": {"app": "a", "readinessProbe": own}, "bare": {"app": "a", "health": {"enabled": False}}}
    made = helm.trial("--set-json", f"workers={json.dumps(workers)}")
    (plain,) = deployment(made, "partita-worker-plain")["containers"]
    assert plain["readinessProbe"] == own
    assert plain["livenessProbe"]["httpGet"]["path"] == "/livez"
    (bare,) = deployment(made, "partita-worker-bare")["containers"]
    assert [key for key in bare if key.endswith("Probe") or key == "ports"] == []


def test_prometheus_finds_the_workers(rendered: Everything) -> None:
    made = rendered["everything-values.yaml"]
    (monitor,) = of_kind(made, "PodMonitor")
    (pod,) = (
        each["spec"]["template"] for each in of_kind(made, "Deployment") if "-worker-" in each["metadata"]["name"]
    )
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"], endpoint["interval"]) == ("health", "/metrics", "20s")
    (policy,) = of_kind(made, "NetworkPolicy", "orders-worker")
    (ingress,) = policy["spec"]["ingress"]
    assert ingress["ports"] == [{"port": "health", "protocol": "TCP"}]
    assert ingress["from"], "metricsFrom is for workers, too"


@pytest.mark.parametrize(("name", "seconds"), [("plain", 61), ("shop", 135), ("custom", 3600)])
def test_a_stopping_worker_has_time_for_its_tasks(rendered: Everything, name: str, seconds: int) -> None:
    pod = deployment(rendered["workers-values.yaml"], f"partita-worker-{name}")
    assert pod["terminationGracePeriodSeconds"] == seconds


def test_a_worker_that_scales_leaves_its_replicas_alone(rendered: Everything) -> None:
    made = rendered["workers-values.yaml"]
    assert "replicas" not in one(made, "Deployment", "partita-worker-scaled")["spec"]
    (scaler,) = of_kind(made, "HorizontalPodAutoscaler")
    assert scaler["spec"]["scaleTargetRef"]["name"] == "partita-worker-scaled"
    assert [each["type"] for each in scaler["spec"]["metrics"]] == ["Resource", "Resource", "External"]
    assert of_kind(made, "PodDisruptionBudget", "partita-worker-scaled") == []
    custom = deployment(made, "partita-worker-custom")["containers"][0]
    assert (custom["command"], custom["args"]) == (["/app/run"], ["--queue", "gpu"])


def test_jobs_that_look_after_months(rendered: Everything) -> None:
    made = rendered["embedded-values.yaml"]
    for name, args in (("ensure", ["partitions", "ensure"]), ("drop", ["partitions", "drop", "--compact"])):
        spec = one(made, "CronJob", f"partita-{name}")["spec"]
        assert spec["concurrencyPolicy"] == "Forbid"
        assert spec["startingDeadlineSeconds"] > 0
        pod = spec["jobTemplate"]["spec"]["template"]["spec"]
        assert pod["containers"][0]["args"] == args
        account = one(made, "ServiceAccount", pod["serviceAccountName"])
        assert account["automountServiceAccountToken"] is False
        subjects = [subject for each in made for subject in each.get("subjects", ())]
        assert all(subject["name"] != pod["serviceAccountName"] for subject in subjects)


def test_the_embedded_database_says_what_it_is_not_for(helm: Helm) -> None:
    made = helm.trial()
    for kind in ("StatefulSet", "Secret", "Service"):
        assert (
            one(made, kind, "partita-postgresql")["metadata"]["annotations"]["partita.dev/not-for-production"] == "true"
        )
    secret = one(made, "Secret", "partita-postgresql")
    assert secret["immutable"] is True
    url = base64.b64decode(secret["data"]["url"]).decode()
    assert url.endswith("@partita-postgresql.partita-system.svc:5432/partita")
    given = one(helm.trial("--set", "postgresql.embedded.password=longenough"), "Secret", "partita-postgresql")
    assert base64.b64decode(given["data"]["password"]) == b"longenough"


def test_alerts_belong_to_the_release(rendered: Everything) -> None:
    (rule,) = of_kind(rendered["everything-values.yaml"], "PrometheusRule")
    alerts = rule["spec"]["groups"][0]["rules"]
    for alert in alerts:
        assert 'namespace="partita-system",job="partita"' in alert["expr"]
        assert alert["annotations"]["runbook_url"] == f"https://runbooks.example.com/partita#{alert['alert'].lower()}"
    assert any("{{ $labels.queue }}" in alert["annotations"]["summary"] for alert in alerts)


def test_notes_say_what_comes_next(helm: Helm) -> None:
    for path in CI:
        text = helm("install", "partita", str(CHART), "--dry-run=client", "--namespace", "here", "-f", str(path))
        notes = text.partition("NOTES:")[2]
        assert "helm -n here test partita" in notes, path.name
    assert "NOT FOR PRODUCTION" in helm(
        "install",
        "p",
        str(CHART),
        "--dry-run=client",
        "-f",
        str(CI[0]),
        "--set",
        "database.url=",
        "--set",
        "postgresql.embedded.enabled=true",
    )


def test_the_first_workflow_of_the_notes_is_valid(helm: Helm, tmp_path: Path) -> None:
    text = helm("install", "p", str(CHART), "--dry-run=client", "--set", "postgresql.embedded.enabled=true")
    shown = text.partition("<<'EOF'\n")[2].partition("  EOF")[0]
    lines = "\n".join(line.removeprefix("  ") for line in shown.splitlines())
    file = tmp_path / "notes.yaml"
    file.write_text(lines, "utf-8")
    assert [(each.kind, each.problems) for each in check_file(file)] == [
        ("WorkflowDefinition", ()),
        ("WorkflowRun", ()),
    ]
    for spec in (each["spec"] for each in objects(lines) if each["kind"] == "WorkflowDefinition"):
        assert isinstance(spec["output"], dict), "the API server takes an object only"
