"""Values of the processes: operator, workers and jobs."""

from __future__ import annotations

from typing import Final

from chart_values.nodes import (
    NAME,
    Node,
    flag,
    group,
    kubernetes,
    kubernetes_list,
    labels,
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
    service_account,
    volumes,
)
from chart_values.settings import settings

CRON: Final = r"^(@(hourly|daily|weekly|monthly)|\S+ \S+ \S+ \S+ \S+)$"


def operator() -> Node:
    """The operator."""
    return group(
        "The operator.",
        replicas=number(
            "Replicas, of which one leads. Two, so that a node that fails is followed by a leader in seconds.",
            2,
            high=10,
        ),
        logLevel=text("What is logged.", "INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR")),
        bindAddress=text("Address of the probes and metrics; `::` where pods have IPv6 only.", "0.0.0.0"),  # noqa: S104 - in a pod
        extraEnv=environment("More variables."),
        resources=resources({"cpu": "100m", "memory": "128Mi"}, {"memory": "512Mi"}),
        terminationGracePeriodSeconds=number(
            "How long a stopping pod may take. Watches end within 15 s, then what was accepted is committed.",
            60,
            low=30,
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
            "An init container waits until the schema is there, so that a first installation shows no failing workers.",
            True,
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
            "How long a stopping pod may take; 0 means worker.stopGraceMs and 15 s, for tasks to end or go back.",
            0,
        ),
        podDisruptionBudget=disruption_budget("PodDisruptionBudget.", enabled=True),
        serviceAccount=service_account("Service account.", token=False),
        health=group(
            "Probes and metrics, which the worker's process serves.",
            enabled=flag(
                "Serve them, and let the kubelet ask. Not for a command of your own that is no Partita worker.", True
            ),
            port=number("Port, which no task may use.", 8080, low=1024, high=65_535),
            bindAddress=text("Address; `::` where pods have IPv6 only.", "0.0.0.0"),  # noqa: S104 - in a pod
        ),
        startupProbe=kubernetes("Probe instead of the chart's.", "Container.startupProbe"),
        livenessProbe=kubernetes("Probe instead of the chart's.", "Container.livenessProbe"),
        readinessProbe=kubernetes("Probe instead of the chart's.", "Container.readinessProbe"),
        **marks(),
        **volumes(),
        **placement(),
    )


def without_defaults(node: Node) -> Node:
    """The same node without any default, since what is not given comes from elsewhere."""
    children = node.children and {key: without_defaults(child) for key, child in node.children.items()}
    return Node(
        description=node.description,
        kind=node.kind,
        schema=node.schema,
        children=children,
        item=node.item and without_defaults(node.item),
        shared=node.shared,
    )


def migrations() -> Node:
    """The jobs that migrate the database."""
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


def maintenance() -> Node:
    """The CronJobs."""

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
