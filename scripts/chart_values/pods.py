"""Values that every pod of the chart has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chart_values.nodes import (
    NAME,
    QUANTITY,
    UNSET,
    Node,
    amount,
    flag,
    group,
    kubernetes,
    kubernetes_list,
    labels,
    listing,
    number,
    text,
)


def image(repository: str, tag: str, meaning: str) -> Node:
    """Where an image is."""
    return group(
        meaning,
        repository=text("Registry and name.", repository, pattern=r"^[a-z0-9][a-zA-Z0-9._:/-]*$"),
        tag=text(
            "Tag; empty takes the chart's appVersion." if not tag else "Tag.", tag, pattern=r"^[\w][\w.-]{0,127}$"
        ),
        digest=text("Digest, which wins over the tag.", pattern="^sha256:[0-9a-f]{64}$"),
        pullPolicy=text("When it is pulled.", "IfNotPresent", choices=("Always", "IfNotPresent", "Never")),
    )


def resources(requests: Mapping[str, str], limits: Mapping[str, str]) -> Node:
    """Requests and limits."""

    def quantities(meaning: str, default: Mapping[str, str]) -> Node:
        either = {"anyOf": [{"type": "string", "pattern": QUANTITY}, {"type": "number", "minimum": 0}]}
        item = Node(description="A quantity.", kind="quantity", schema=either)
        return Node(description=meaning, kind="map", default=dict(default), schema={"type": "object"}, item=item)

    return group(
        "What a container asks for and may take.",
        requests=quantities("What is reserved.", requests),
        limits=quantities("What is the most. No limit of CPU, since throttling delays leases and heartbeats.", limits),
    )


def service_account(meaning: str, *, token: bool | None = None) -> Node:
    """A service account that is made or named."""
    children: dict[str, Node] = {
        "create": flag("Make it.", True),
        "name": text("Its name; empty makes one up, or takes `default` where none is made.", pattern=NAME),
        "annotations": labels("Annotations, such as those that give it a role of a cloud."),
    }
    if token is not None:
        children["automountServiceAccountToken"] = flag("Give pods a token of the Kubernetes API.", token)
    return group(meaning, **children)


def disruption_budget(meaning: str, *, enabled: bool) -> Node:
    """A PodDisruptionBudget; of both bounds, the one that is set counts."""
    return group(
        meaning,
        enabled=flag("Make it.", enabled),
        minAvailable=amount("So many pods stay; where it is set it counts instead of maxUnavailable.", ""),
        maxUnavailable=amount("So many pods may be away.", 1),
    )


def spread() -> Node:
    """Topology spread constraints; the selector of the pods is added."""
    item = group(
        "One constraint; the pods' own labels are its selector.",
        maxSkew=number("Largest difference of pods.", low=1),
        topologyKey=text("Label of the nodes.", UNSET),
        whenUnsatisfiable=text("What happens otherwise.", UNSET, choices=("DoNotSchedule", "ScheduleAnyway")),
        minDomains=number("Fewest domains.", low=1),
        nodeAffinityPolicy=text("As in Kubernetes.", UNSET, choices=("Honor", "Ignore")),
        nodeTaintsPolicy=text("As in Kubernetes.", UNSET, choices=("Honor", "Ignore")),
    )
    default: list[dict[str, Any]] = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
        for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    ]
    return listing("How pods are spread over nodes and zones.", item, default)


def tolerations() -> Node:
    """Tolerations."""
    item = group(
        "One toleration.",
        key=text("Key of the taint.", UNSET),
        operator=text("How it is compared.", UNSET, choices=("Exists", "Equal")),
        value=text("Value of the taint.", UNSET),
        effect=text("Effect of the taint.", UNSET, choices=("NoSchedule", "PreferNoSchedule", "NoExecute")),
        tolerationSeconds=number("For how long."),
    )
    return listing("Taints of nodes that are no obstacle.", item)


def environment(meaning: str) -> Node:
    """More variables of a container."""
    item = group(
        "One variable.",
        name=text("Its name.", UNSET, pattern="^[A-Za-z_][A-Za-z0-9_]*$"),
        value=text("Its value.", UNSET),
        valueFrom=Node(
            description="Where its value comes from. As in EnvVar.valueFrom.",
            kind="object",
            schema={"type": "object", "additionalProperties": True},
        ),
    )
    return listing(meaning, item)


def placement() -> dict[str, Node]:
    """Where pods run."""
    return {
        "nodeSelector": labels("Labels of the nodes."),
        "tolerations": tolerations(),
        "affinity": kubernetes("Affinity.", "PodSpec.affinity"),
        "topologySpreadConstraints": spread(),
        "priorityClassName": text("Priority class of the pods."),
    }


def marks() -> dict[str, Node]:
    """Labels and annotations of pods."""
    return {
        "podLabels": labels("More labels of the pods."),
        "podAnnotations": labels("Annotations of the pods."),
    }


def volumes() -> dict[str, Node]:
    """Volumes besides the writable /tmp and the certificates of the database."""
    return {
        "extraVolumes": kubernetes_list("More volumes.", "PodSpec.volumes"),
        "extraVolumeMounts": kubernetes_list("Where they are mounted.", "Container.volumeMounts"),
    }


def secret_key(meaning: str, key: str) -> Node:
    """A key of a Secret that somebody else made."""
    return group(
        meaning,
        name=text("Name of the Secret, in the release's namespace.", pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
        key=text("Key that holds the URL.", key, pattern=r"^[-._a-zA-Z0-9]+$"),
    )
