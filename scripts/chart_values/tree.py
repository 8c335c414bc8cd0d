"""Every value of the chart, in the order of values.yaml."""

from __future__ import annotations

from typing import Final

from chart_values.nodes import (
    NAME,
    UNSET,
    Node,
    flag,
    group,
    hidden,
    kubernetes,
    labels,
    listing,
    mapping,
    number,
    text,
    texts,
)
from chart_values.pods import (
    image,
    resources,
    secret_key,
)
from chart_values.processes import maintenance, migrations, operator, without_defaults, worker
from chart_values.settings import settings
from chart_values.surroundings import embedded, metrics, network_policy

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
            "Identity of the cluster, at most 63 characters, which must never change. Empty takes the uid of the "
            "namespace kube-system; needed with watchNamespaces, since reading that is a right in the cluster.",
            pattern="^[-._a-zA-Z0-9]{1,63}$",
        ),
        engine=hidden(_engine()),
        database=_database(),
        settings=settings(),
        operator=operator(),
        workerDefaults=worker("What every worker has that does not say otherwise."),
        workers=mapping(
            "Workers by name, each a Deployment; values that are not given are those of workerDefaults.",
            without_defaults(worker("One worker.")),
            keys="^[a-z]([-a-z0-9]{0,21}[a-z0-9])?$",
        ),
        migrations=migrations(),
        maintenance=maintenance(),
        crds=_crds(),
        rbac=_rbac(),
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
        metrics=metrics(),
        networkPolicy=network_policy(),
        tests=group(
            "What `helm test` runs.", resources=resources({"cpu": "50m", "memory": "96Mi"}, {"memory": "256Mi"})
        ),
        postgresql=group("PostgreSQL of the release's own.", embedded=embedded()),
        **{
            "global": Node(
                description="Values that charts share; none is used.",
                kind="object",
                default={},
                schema={"type": "object", "additionalProperties": True},
            )
        },
    )


def _crds() -> Node:
    return group(
        "The custom resource definitions, which belong to the whole cluster.",
        install=flag("Install and upgrade them with the release.", True),
        keep=flag("Keep them, and with them all objects, when the release is uninstalled.", True),
    )


def _rbac() -> Node:
    return group(
        "Rights in the Kubernetes API.",
        create=flag("Make the operator's roles.", True),
        userRoles=flag(
            "Make roles for people: view, edit and admin. In cluster mode they are part of the roles so named; "
            "with watchNamespaces they are Roles to bind.",
            True,
        ),
    )


def _engine() -> Node:
    return group(
        "What the WorkflowEngine object is made with; afterwards kubectl changes it. The chart does not make it.",
        paused=flag("Start nothing.", UNSET),
        ttlSecondsAfterFinished=number("How long a finished WorkflowRun stays that does not say so itself."),
    )


def _database() -> Node:
    return group(
        "PostgreSQL. One of existingSecret, url and postgresql.embedded.enabled has to be given.",
        existingSecret=secret_key("Secret with the URL.", "url"),
        url=text("The URL itself; it is kept in a Secret of the release.", pattern=URL),
        migrations=group(
            "A direct connection for migrations and months, needed where the URL leads to PgBouncer. Empty: the URL.",
            existingSecret=secret_key("Secret with the URL.", "url"),
            url=text("The URL itself.", pattern=URL),
        ),
        read=group(
            "A connection for reads, such as that of a standby. Empty takes the URL.",
            existingSecret=secret_key("Secret with the URL.", "url"),
            url=text("The URL itself.", pattern=URL),
        ),
        schema=text(
            "Schema of this installation, which it shares with no other.", "partita", pattern="^[a-z_][a-z0-9_]{0,47}$"
        ),
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
