"""Values of what stands beside the processes: metrics, network policies and a database to try out."""

from __future__ import annotations

from chart_values.nodes import (
    QUANTITY,
    UNSET,
    Node,
    flag,
    group,
    kubernetes,
    kubernetes_list,
    labels,
    listing,
    mapping,
    number,
    text,
    texts,
)
from chart_values.pods import (
    image,
    placement,
    resources,
)


def metrics() -> Node:
    """What Prometheus is told."""
    return group(
        "Metrics of operator and workers, for Prometheus.",
        serviceMonitor=_monitor("A ServiceMonitor for the operator; needs the Prometheus operator."),
        podMonitor=_monitor("A PodMonitor for the workers; needs the Prometheus operator."),
        prometheusRule=group(
            "A PrometheusRule with the alerts of the runbook; needs the Prometheus operator.",
            enabled=flag("Make it.", False),
            labels=labels("Labels by which a Prometheus finds it."),
            runbookUrl=text(
                "Where the runbook is; the alert's name is appended as an anchor.",
                "https://github.com/partita/partita/blob/main/docs/runbook.md",
            ),
        ),
    )


def _monitor(meaning: str) -> Node:
    return group(
        meaning,
        enabled=flag("Make it.", False),
        interval=text("How often.", "30s", pattern="^[0-9]+(ms|s|m|h)$"),
        scrapeTimeout=text("How long one scrape may take.", "10s", pattern="^[0-9]+(ms|s|m|h)$"),
        labels=labels("Labels by which a Prometheus finds it."),
    )


def network_policy() -> Node:
    """Who may talk to whom."""
    return group(
        "NetworkPolicies for all pods of the release.",
        enabled=flag("Make them.", False),
        databasePort=number("Port of PostgreSQL.", 5432, low=1, high=65_535),
        apiServerPorts=listing(
            "Ports of the Kubernetes API, behind its Service too.", number("One port.", low=1, high=65_535), (443, 6443)
        ),
        metricsFrom=kubernetes_list(
            "Who may read metrics; empty means everyone in the cluster.", "NetworkPolicyIngressRule.from"
        ),
        workerEgress=kubernetes_list(
            "Where workers may go besides DNS and PostgreSQL; empty means anywhere.", "NetworkPolicySpec.egress"
        ),
    )


def embedded() -> Node:
    """A PostgreSQL of the release."""
    return group(
        "One PostgreSQL for trying the product out. NOT FOR PRODUCTION: one server, no backups, no TLS.",
        enabled=flag("Run it, and use it.", False),
        image=image("postgres", "18", "The official image, or one of its layout."),
        password=text(
            "Password; empty makes one up at the first installation. Needed where manifests are rendered away from the "
            "cluster (`helm template`, Argo CD), which cannot look up the one that is there.",
            pattern="^[A-Za-z0-9_-]{8,128}$",
        ),
        persistence=group(
            "Its disk.",
            enabled=flag("Keep data when the pod is gone.", True),
            size=text("Size.", "8Gi", pattern=QUANTITY),
            storageClass=text("Storage class; empty takes the cluster's default."),
            accessModes=texts("Access modes; empty means ReadWriteOnce."),
            retain=flag("Keep the volume when the release is uninstalled.", True),
        ),
        resources=resources({"cpu": "100m", "memory": "256Mi"}, {"memory": "1Gi"}),
        podSecurityContext=kubernetes(
            "Security of its pod.",
            "PodSpec.securityContext",
            {
                "runAsNonRoot": True,
                "runAsUser": 999,
                "runAsGroup": 999,
                "fsGroup": 999,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        ),
        parameters=mapping(
            "Settings of the server, such as max_connections.", text("Its value.", UNSET), keys="^[a-z_.]+$"
        ),
        nodeSelector=labels("Labels of the nodes."),
        tolerations=placement()["tolerations"],
        affinity=placement()["affinity"],
        podAnnotations=labels("Annotations of the pod."),
    )
