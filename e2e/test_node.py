"""A cluster that runs pods, as the chart's tests rely on it."""

from __future__ import annotations

import json
import tarfile
import urllib.request
from pathlib import Path

import pytest

from e2e.cluster import ClusterError, PodCluster
from e2e.cluster.node import Node
from e2e.cluster.node.images import write_image
from e2e.cluster.node.requirements import BUSYBOX
from e2e.node_objects import Object, apply, job, pod, pod_spec, run_to_end, wait_for

SERVER = "mkdir /tmp/www && echo served >/tmp/www/index.html && exec busybox httpd -f -p 8080 -h /tmp/www"


def test_a_job_of_one_pod_completes(node: PodCluster, node_namespace: str) -> None:
    apply(node, node_namespace, job("once", "echo done"))
    wait_for(node, node_namespace, "job/once", "condition=Complete")
    assert node.run_kubectl("logs", "-n", node_namespace, "job/once") == "done\n"


def test_a_job_that_fails_says_so(node: PodCluster, node_namespace: str) -> None:
    apply(node, node_namespace, job("never", "exit 3"))
    wait_for(node, node_namespace, "job/never", "condition=Failed")
    pods = node.kubectl_json("get", "pods", "-n", node_namespace, "-l", "job-name=never")["items"]
    assert [status["state"]["terminated"]["exitCode"] for p in pods for status in p["status"]["containerStatuses"]] == [
        3
    ]


def test_a_cron_job_fires(node: PodCluster, node_namespace: str) -> None:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job("tick", "echo tick")["spec"]}}
    apply(
        node, node_namespace, {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec}
    )
    wait_for(node, node_namespace, "cronjob/tick", "jsonpath={.status.lastSuccessfulTime}")


def test_commands_run_in_a_pod(node: PodCluster, node_namespace: str) -> None:
    apply(node, node_namespace, pod("target", "exec sleep 600"))
    wait_for(node, node_namespace, "pod/target", "condition=Ready")
    assert node.run_kubectl("exec", "-n", node_namespace, "target", "--", "echo", "inside") == "inside\n"
    with pytest.raises(ClusterError, match="exit code 7"):
        node.run_kubectl("exec", "-n", node_namespace, "target", "--", "sh", "-c", "exit 7")


def serve(node: PodCluster, namespace: str) -> None:
    """Run a web server in a pod behind the Service `web`, and wait until it answers as ready."""
    probe = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
    apply(
        node,
        namespace,
        pod("web", SERVER, labels={"app": "web"}, readinessProbe=probe),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    )
    wait_for(node, namespace, "pod/web", "condition=Ready")
    wait_for(node, namespace, "endpoints/web", "jsonpath={.subsets[0].addresses[0].ip}")


def test_services_are_reached_by_name_and_by_address(node: PodCluster, node_namespace: str) -> None:
    serve(node, node_namespace)
    address = node.kubectl_json("get", "service", "web", "-n", node_namespace)["spec"]["clusterIP"]
    names = ("web", f"web.{node_namespace}", f"web.{node_namespace}.svc", f"web.{node_namespace}.svc.cluster.local")
    script = "".join(f"wget -q -O - http://{name}/\n" for name in (*names, address))
    assert run_to_end(node, node_namespace, pod("asks", script)) == "served\n" * 5


def test_a_service_is_reached_from_outside(node: PodCluster, node_namespace: str) -> None:
    serve(node, node_namespace)
    with node.reach(node_namespace, "web", 80) as port:
        url = f"http://127.0.0.1:{port}/"
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert answer.read() == b"served\n"


def test_a_pod_reaches_the_api_and_has_a_token_of_its_own(node: PodCluster, node_namespace: str) -> None:
    script = "nc -w 20 kubernetes.default.svc 443 </dev/null; cat /var/run/secrets/kubernetes.io/serviceaccount/token"
    token = run_to_end(node, node_namespace, pod("asks", script))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = json.loads(node.run_kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))
    user = answer["status"]["user"]
    assert user["username"] == f"system:serviceaccount:{node_namespace}:default"
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["asks"]


def test_a_hardened_pod_runs(node: PodCluster, node_namespace: str) -> None:
    script = """\
id -u; grep Seccomp: /proc/self/status; grep CapEff: /proc/self/status
touch /readonly 2>/dev/null && echo writable || echo readonly
touch /tmp/file && echo scratch
"""
    hardened: Object = {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    log = run_to_end(
        node,
        node_namespace,
        pod(
            "hardened",
            script,
            pod=hardened,
            volumeMounts=[{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - a path in the pod
            securityContext={
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        ),
    )
    assert log.split() == ["65532", "Seccomp:", "2", "CapEff:", "0" * 16, "readonly", "scratch"]


def test_root_is_refused_where_it_is_forbidden(node: PodCluster, node_namespace: str) -> None:
    apply(node, node_namespace, pod("root", "true", pod={"securityContext": {"runAsNonRoot": True}}))
    waiting = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError"
    wait_for(node, node_namespace, "pod/root", waiting)


def test_a_claimed_volume_belongs_to_the_pods_group_and_outlives_it(node: PodCluster, node_namespace: str) -> None:
    claim: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    apply(node, node_namespace, claim)
    volume: Object = {
        "securityContext": {"runAsUser": 999, "runAsGroup": 999, "fsGroup": 999},
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    mounts = [{"name": "data", "mountPath": "/data"}]
    run_to_end(node, node_namespace, pod("writes", "echo kept >/data/file", pod=volume, volumeMounts=mounts))
    script = "cat /data/file; stat -c %g /data"
    log = run_to_end(node, node_namespace, pod("reads", script, pod=volume, volumeMounts=mounts)).split()
    assert log[0] == "kept"
    if isinstance(node, Node):  # kind's volumes are of a kind whose group the kubelet leaves as it is
        assert log[1] == "999"


def test_an_image_is_loaded_from_an_archive(node: PodCluster, node_namespace: str, tmp_path: Path) -> None:
    missing = pod("early", "true")
    missing["spec"]["containers"][0]["image"] = "partita.local/loaded:1"
    missing["spec"]["containers"][0]["command"] = ["/busybox", "echo", "loaded"]
    apply(node, node_namespace, missing)
    never = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImageNeverPull"
    wait_for(node, node_namespace, "pod/early", never)
    with tarfile.open(tmp_path / "layer.tar", "w") as layer:
        layer.add(BUSYBOX, "busybox")
    write_image(tmp_path / "image.tar", "partita.local/loaded:1", (tmp_path / "layer.tar").read_bytes(), ("/busybox",))
    node.load_image(tmp_path / "image.tar")
    wait_for(node, node_namespace, "pod/early", "jsonpath={.status.phase}=Succeeded")
    assert node.run_kubectl("logs", "-n", node_namespace, "early") == "loaded\n"


def test_two_helms_install_and_remove_a_chart(node: PodCluster, node_namespace: str, tmp_path: Path) -> None:
    chart = tmp_path / "small"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: small\nversion: 1.0.0\n", encoding="utf-8")
    spec = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "{{ .Release.Name }}"}}
    spec |= {"spec": {"backoffLimit": 0, "template": {"spec": pod_spec("echo installed")}}}
    (chart / "templates" / "job.yaml").write_text(json.dumps(spec), encoding="utf-8")
    for name, program in (("four", node.helm), ("three", node.helm_3)):
        where = ("--namespace", node_namespace)
        version = node.run_helm("version", "--template", "{{ .Version }}", program=program)
        assert version.startswith({"four": "v4.", "three": "v3."}[name])
        wait = ("--wait", "--wait-for-jobs", "--timeout", "90s")
        node.run_helm("install", name, str(chart), *where, *wait, program=program)
        assert node.run_kubectl("logs", *where, f"job/{name}") == "installed\n"
        node.run_helm("uninstall", name, *where, program=program)
