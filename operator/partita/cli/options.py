"""Options that several commands share, declared once so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from partita.cli import names
from partita.cli.connect import Target, is_plugin
from partita.cli.output import Format
from partita.cli.run_names import run_names

RUNS: Final = "Runs"
TRY: Final = "Write and try workflows"
LOOK: Final = "Look into the database"
ADMINISTRATION: Final = "Install and operate"

Output = Annotated[Format, typer.Option("-o", "--output", help="How to print the result.")]
Namespace = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        show_default=False,
        callback=names.namespace,
        help="Namespace of the run or definition; without it that of the kubeconfig's context, else default.",
    ),
]
Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        callback=names.run,
        autocompletion=run_names,
        help="The run's id, or its name: that of its WorkflowRun object or manifest.",
    ),
]
Manifest = Annotated[
    Path, typer.Argument(metavar="FILE", help="YAML file with definitions and runs; - reads standard input.")
]
DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--database-url",
        show_default=False,
        hidden=is_plugin(),
        help="PostgreSQL to talk to; without it PARTITA_DATABASE_URL, else the cluster of the kubeconfig.",
    ),
]
Kubeconfig = Annotated[
    str, typer.Option("--kubeconfig", show_default=False, help="Talk to the cluster of this kubeconfig.")
]
KubeContext = Annotated[
    str, typer.Option("--context", show_default=False, help="Talk to the cluster of this context of the kubeconfig.")
]
Timeout = Annotated[
    str, typer.Option("--timeout", show_default=False, help="Give up after this long, such as 10m; exits 6.")
]


def target(database_url: str, kubeconfig: str, context: str) -> Target:
    """The target that a command's shared options name."""
    return Target(database_url=database_url, kubeconfig=kubeconfig, context=context)
