"""Every value of the chart, in the order of values.yaml."""

from __future__ import annotations

from typing import Final

from chart_values.nodes import (
    NAME,
    QUANTITY,
    UNSET,
    Node,
    amount,
    flag,
    group,
    hidden,
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
    disruption_budget,
    environment,
    image,
    marks,
    placement,
    resources,
    secret_key,
    service_account,
    volumes,
)
from chart_values.settings import settings

CRON: Final = r"^(@(hourly|daily|weekly|monthly)|\S+ \S+ \S+ \S+ \S+)$"
URL: Final = r"^postgres(ql)?://.+"


def tree() -> Node:
    """The root."""
    return group(
        "Values of the chart partita.",
        nameOverride=text("Name of the product in names of objects, instead of the chart's.", pattern=NAME),
        fullnameOverride=text("Beginning of every object's name, instead of one made of the release's.", pattern=NAME),
        commonLabels=labels("More labels of every object."),
        image=image("ghcr.io/partita/partita", "", "Image of the operator, of the jobs and of workers without one."),
        imagePullSecrets=listing(
            "Secrets for pulling images.", group("One Secret.", name=text("Its name.", UNSET, pattern=NAME))
        ),
        watchNamespaces=texts(
            "Namespaces whose objects are handled; empty means all. With some, every right is a Role in one of them.",
            pattern=NAME,
        ),
        clusterUid=text(
            "Identity of the cluster, at most 63 characters, which must never change. Empty takes the uid of the namespace "
            "kube-system; needed with watchNamespaces, since reading that is a right in the cluster.",
            pattern="^[-._a-zA-Z0-9]{1,63}$",
        ),
        engine=hidden(_engine()),
        database=_database(),
        settings=settings(),
        operator=_operator(),
        workerDefaults=worker("What every worker has that does not say otherwise."),
        workers=mapping(
            "Workers by name, each a Deployment; values that are not given are those of workerDefaults.",
            _without_defaults(worker("One worker.")),
            keys="^[a-z]([-a-z0-9]{0,21}[a-z0-9])?$",
        ),
        migrations=_migrations(),
        maintenance=_maintenance(),
        crds=group(
            "The custom resource definitions, which belong to the whole cluster.",
            install=flag("Install and upgrade them with the release.", True),
            keep=flag("Keep them, and with them all objects, when the release is uninstalled.", True),
        ),
        rbac=group(
            "Rights in the Kubernetes API.",
            create=flag("Make the operator's roles.", True),
            userRoles=flag(
                "Make roles for people: view, edit and admin. In cluster mode they are part of the roles of these names; with "
                "watchNamespaces they are Roles to bind.",
                True,
            ),
        ),
        podSecurityContext=kubernetes(
            "Security of all pods but those of the embedded database.",
            "PodSpec.securityContext",
            {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        ),
        securityContext=kubernetes(
            "Security of all containers.",
            "Container.securityContext",
            {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
            },
        ),
        metrics=_metrics(),
        networkPolicy=_network_policy(),
        tests=group("What `helm test` runs.", resources=resources({"cpu": "50m", "memory": "96Mi"}, {"memory": "256Mi"})),
        postgresql=group("PostgreSQL of the release's own.", embedded=_embedded()),
        **{"global": Node(description="Values that charts share; none is used.", kind="object", default={},
                          schema={"type": "object", "additionalProperties": True})},
    )


def _engine() -> Node:
    return group(
        "What the WorkflowEngine object is made with; afterwards it is changed by kubectl. The leader makes it, not the chart.",
        paused=flag("Start nothing.", UNSET),
        ttlSecondsAfterFinished=number("How long a finished WorkflowRun stays that does not say so itself."),
    )


def _database() -> Node:
    return group(
        "PostgreSQL. One of existingSecret, url and postgresql.embedded.enabled has to be given.",
        existingSecret=secret_key("Secret with the URL.", "url"),
        url=text("The URL itself; it is kept in a Secret of the release.", pattern=URL),
        migrations=group(
            "A direct connection for migrations and months, needed where the URL leads through PgBouncer. Empty takes the URL.",
            existingSecret=secret_key("Secret with the URL.", "url"),
            url=text("The URL itself.", pattern=URL),
        ),
        read=group(
            "A connection for reads, such as that of a standby. Empty takes the URL.",
            existingSecret=secret_key("Secret with the URL.", "url"),
            url=text("The URL itself.", pattern=URL),
        ),
        schema=text("Schema of this installation, which it shares with no other.", "partita", pattern="^[a-z_][a-z0-9_]{0,47}$"),
        pooled=flag("The URL leads through PgBouncer in transaction mode.", False),
        planner=text(
            "Who sets the planner's options: auto (each session) or role (ALTER ROLE, see createRoles).",
            "auto",
            choices=("auto", "role"),
        ),
        createRoles=flag(
            "Migrations also make the roles SCHEMA_coordinator and SCHEMA_reader; needs the right CREATEROLE.", False
        ),
        tls=group(
            "TLS, where the URL itself does not say.",
            mode=text(
                "As in sslmode; empty leaves it to the URL.",
                choices=("", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
            ),
            ca=group(
                "Where the authority's certificate is.",
                secretName=text("A Secret that holds it."),
                configMapName=text("A ConfigMap that holds it."),
                key=text("Its key.", "ca.crt", pattern=r"^[-._a-zA-Z0-9]+$"),
            ),
            clientCertificate=group(
                "A certificate to log in with.",
                secretName=text("A Secret of the type kubernetes.io/tls."),
            ),
        ),
    )


def _operator() -> Node:
    return group(
        "The operator.",
        replicas=number(
            "Replicas, of which one leads. Two, so that a node that fails is followed by a leader in seconds.", 2, high=10
        ),
        logLevel=text("What is logged.", "INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR")),
        bindAddress=text("Address of the probes and metrics; `::` where pods have IPv6 only.", "0.0.0.0"),
        extraEnv=environment("More variables."),
        resources=resources({"cpu": "100m", "memory": "128Mi"}, {"memory": "512Mi"}),
        terminationGracePeriodSeconds=number(
            "How long a stopping pod may take. Watches end within 15 s, then what was accepted is committed.", 60, low=30
        ),
        podDisruptionBudget=disruption_budget("PodDisruptionBudget.", enabled=True),
        serviceAccount=service_account("Service account."),
        **marks(),
        **volumes(),
        **placement(),
    )


def worker(meaning: str) -> Node:
    """One worker."""
    return group(
        meaning,
        image=image("", "", "Image; an empty repository takes the one of the operator."),
        app=text("Where the tasks are: MODULE or MODULE:APP. Not needed where args are given."),
        command=texts("Instead of the image's entry point, which must be `partita`."),
        args=texts("Instead of `worker APP` with the queues, namespaces and slots."),
        queues=texts("Queues that are served; empty means `default`."),
        namespaces=texts("Namespaces whose runs are served; empty means all.", pattern=NAME),
        slots=number("Tasks at a time; 0 takes the product's default.", 0, high=10_000),
        replicas=number("Replicas; without effect where autoscaling is enabled.", 1),
        logLevel=text("What is logged.", "INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR")),
        settings=settings(),
        env=environment("More variables, such as what tasks need."),
        envFrom=kubernetes_list("Sources of variables.", "Container.envFrom"),
        waitForDatabase=flag(
            "An init container waits until the schema is there, so that a first installation shows no failing workers.", True
        ),
        resources=resources({"cpu": "100m", "memory": "128Mi"}, {"memory": "512Mi"}),
        autoscaling=group(
            "A HorizontalPodAutoscaler.",
            enabled=flag("Make it.", False),
            minReplicas=number("Fewest replicas.", 1, low=1),
            maxReplicas=number("Most replicas.", 10, low=1),
            targetCPUUtilizationPercentage=number("CPU of what is requested; 0 leaves it out.", 80),
            targetMemoryUtilizationPercentage=number("Memory of what is requested; 0 leaves it out.", 0),
            metrics=kubernetes_list("More metrics.", "HorizontalPodAutoscaler.spec.metrics"),
            behavior=kubernetes("Pace.", "HorizontalPodAutoscaler.spec.behavior"),
        ),
        terminationGracePeriodSeconds=number(
            "How long a stopping pod may take; 0 takes worker.stopGraceMs and 15 s, so that tasks end or are handed back.", 0
        ),
        podDisruptionBudget=disruption_budget("PodDisruptionBudget.", enabled=True),
        serviceAccount=service_account("Service account.", token=False),
        startupProbe=kubernetes("Probe.", "Container.startupProbe"),
        livenessProbe=kubernetes("Probe.", "Container.livenessProbe"),
        readinessProbe=kubernetes("Probe.", "Container.readinessProbe"),
        **marks(),
        **volumes(),
        **placement(),
    )


def _without_defaults(node: Node) -> Node:
    """The same node without any default, since what is not given comes from elsewhere."""
    children = node.children and {key: _without_defaults(child) for key, child in node.children.items()}
    return Node(
        description=node.description,
        kind=node.kind,
        schema=node.schema,
        children=children,
        item=node.item and _without_defaults(node.item),
        shared=node.shared,
    )


def _migrations() -> Node:
    return group(
        "Migrations of the database.",
        initContainer=group(
            "In every pod of the operator, before it starts; at a first installation the only ones.",
            enabled=flag("Run them.", True),
        ),
        hook=group(
            "A job before an upgrade, so that an upgrade whose migrations fail changes nothing else.",
            enabled=flag("Run it.", True),
            activeDeadlineSeconds=number("How long it may take in all.", 900, low=60),
            backoffLimit=number("How often it is tried again.", 3),
        ),
        resources=resources({"cpu": "50m", "memory": "96Mi"}, {"memory": "256Mi"}),
        podAnnotations=labels("Annotations of the job's pod."),
    )


def _maintenance() -> Node:
    def job(meaning: str, schedule: str, **more: Node) -> Node:
        return group(
            meaning,
            enabled=flag("Make the CronJob.", True),
            schedule=text("When it runs; a run that is missed is made up for by the next.", schedule, pattern=CRON),
            suspend=flag("Run nothing for now.", False),
            **more,
        )

    return group(
        "CronJobs that look after the months of the database.",
        ensure=job("Makes the months ahead. Operator and workers do so too, hourly.", "17 3 * * *"),
        drop=job(
            "Drops the months that settings.retention.months does not keep.",
            "43 3 * * *",
            compact=flag("Of a month with at most 1,000 unfinished runs, drop all but these.", True),
        ),
        timeZone=text("Time zone of the schedules, such as Etc/UTC; empty is that of the controllers."),
        startingDeadlineSeconds=number("How late a run may begin; later it is left out.", 3600, low=60),
        activeDeadlineSeconds=number("How long a run may take.", 1800, low=60),
        backoffLimit=number("How often a run is tried again.", 2),
        successfulJobsHistoryLimit=number("Finished jobs that stay.", 1),
        failedJobsHistoryLimit=number("Failed jobs that stay.", 3),
        ttlSecondsAfterFinished=number("How long a job stays after its end.", 172_800),
        resources=resources({"cpu": "50m", "memory": "96Mi"}, {"memory": "256Mi"}),
        serviceAccount=service_account("Service account, which has no rights and no token."),
        podLabels=labels("More labels of the pods."),
        podAnnotations=labels("Annotations of the pods."),
        nodeSelector=labels("Labels of the nodes."),
        tolerations=placement()["tolerations"],
        affinity=placement()["affinity"],
        priorityClassName=text("Priority class of the pods."),
    )


def _metrics() -> Node:
    return group(
        "Metrics of the operator, for Prometheus.",
        serviceMonitor=group(
            "A ServiceMonitor; needs the Prometheus operator.",
            enabled=flag("Make it.", False),
            interval=text("How often.", "30s", pattern="^[0-9]+(ms|s|m|h)$"),
            scrapeTimeout=text("How long one scrape may take.", "10s", pattern="^[0-9]+(ms|s|m|h)$"),
            labels=labels("Labels by which a Prometheus finds it."),
        ),
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


def _network_policy() -> Node:
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


def _embedded() -> Node:
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


__all__ = ["amount", "tree", "worker"]
