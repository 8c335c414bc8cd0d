"""Options that several commands share, declared once so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partita.cli.connect import Target
from partita.cli.output import Format

Output = Annotated[Format, typer.Option("-o", "--output", help="How to print the result.")]
Namespace = Annotated[str, typer.Option("-n", "--namespace", help="Namespace of the run or definition.")]
Run = Annotated[str, typer.Argument(help="The run's id, or (in a cluster) the name of its WorkflowRun.")]
Manifest = Annotated[Path, typer.Argument(help="YAML file with definitions and runs; - reads standard input.")]
DatabaseUrl = Annotated[
    str, typer.Option("--database-url", help="PostgreSQL to talk to; without it the cluster of the kubeconfig.")
]
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", help="Kubeconfig file, as of kubectl.")]
KubeContext = Annotated[str, typer.Option("--context", help="Context of the kubeconfig.")]


def target(database_url: str, kubeconfig: str, context: str) -> Target:
    """The target that a command's shared options name."""
    return Target(database_url=database_url, kubeconfig=kubeconfig, context=context)
