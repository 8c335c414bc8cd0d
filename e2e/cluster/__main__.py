"""`python -m e2e.cluster`: a cluster from the shell.

Exit codes: 0 ok · 1 the cluster failed · 2 usage · 3 no such cluster · 5 nothing here can provide one.
"""

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from e2e.cluster import binaries
from e2e.cluster.bundles import FOR_PODS
from e2e.cluster.choice import choose, choose_pods, choose_restartable, find
from e2e.cluster.contract import Cluster, PodCluster
from e2e.cluster.controlplane import ControlPlane
from e2e.cluster.errors import ClusterError, ProviderUnavailable
from e2e.cluster.owned import ROOT, keep
from e2e.cluster.progress import Say, to_stderr

EXIT_FAILED, EXIT_NOT_FOUND, EXIT_UNAVAILABLE = 1, 3, 5
DEFAULT_NAME = "dev"
DEFAULT_NODE_NAME = "node"


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    home: Path = options.state_dir or ROOT / ".state" / f"cluster-{options.name}"
    try:
        return int(options.run(home, options.name, *([options.archive] if "archive" in options else [])))
    except ProviderUnavailable as error:
        print(f"cluster: {error}", file=sys.stderr)
        return EXIT_UNAVAILABLE
    except ClusterError as error:
        print(f"cluster {options.name}: {error}", file=sys.stderr)
        return EXIT_FAILED


def up(home: Path, name: str) -> int:
    """start a cluster, or find the one that runs, and leave it running"""
    cluster = choose(home, name, to_stderr)
    cluster.start()
    _describe(cluster)
    print(f"stop it:    python -m e2e.cluster down --state-dir {shlex.quote(str(home))}")
    return 0


def down(home: Path, name: str) -> int:
    """stop the cluster and remove its objects"""
    cluster = find(home, to_stderr)
    if cluster is None:
        print(f"cluster {name}: nothing runs in {home}")
        return 0
    cluster.stop()
    print(f"cluster {name}: stopped")
    return 0


def status(home: Path, name: str) -> int:
    """say what runs; exit code 0 when the API is ready"""
    cluster = find(home, to_stderr)
    if cluster is None:
        print(f"cluster {name}: nothing runs in {home}; try: python -m e2e.cluster up", file=sys.stderr)
        return EXIT_NOT_FOUND
    ready = cluster.ready()
    _describe(cluster)
    print(f"ready:      {'yes' if ready else 'no'}")
    if isinstance(cluster, ControlPlane):
        for program in cluster.programs().values():
            print(f"program:    {program.name} pid {program.pid} {'runs' if program.alive() else 'has ended'}")
    return 0 if ready else EXIT_FAILED


def env(home: Path, name: str) -> int:
    """print the variables for a shell: eval "$(python -m e2e.cluster env)" """
    cluster = find(home, to_stderr)
    if cluster is None:
        print(f"cluster {name}: nothing runs in {home}; try: python -m e2e.cluster up", file=sys.stderr)
        return EXIT_NOT_FOUND
    for variable, value in cluster.environment().items():
        print(f"export {variable}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(str(cluster.kubectl.parent))}:"$PATH"')
    return 0


def prepare(home: Path, name: str) -> int:
    """do beforehand what takes long before a first start, if anything; say what is missing"""
    return _prepare(choose, home, name)


def prepare_faults(home: Path, name: str) -> int:
    """the same for a cluster whose API server tests can restart"""
    return _prepare(choose_restartable, home, name)


def prepare_node(home: Path, name: str) -> int:
    """the same for a cluster that runs pods, Helm included"""
    return _prepare(choose_pods, home, name)


def _prepare(choice: Callable[[Path, str, Say], Cluster], home: Path, name: str) -> int:
    try:
        choice(home, name, to_stderr).prepare()
    except ProviderUnavailable as error:
        to_stderr(str(error))
    return 0


def node_up(home: Path, name: str) -> int:
    """start a node that runs pods, or find the one that runs, and leave it running (as root)"""
    cluster = find(home, to_stderr) or choose_pods(home, name, to_stderr)
    cluster.start()
    _describe(cluster)
    print(f'use it:     eval "$(python -m e2e.cluster node env --name {shlex.quote(name)})"')
    print(f"an image:   python -m e2e.cluster node load ARCHIVE --name {shlex.quote(name)}")
    print(f"stop it:    python -m e2e.cluster node down --name {shlex.quote(name)}")
    return 0


def node_env(home: Path, name: str) -> int:
    """print the variables for a shell, Helm 4 built and in the PATH: eval "$(python -m e2e.cluster node env)" """
    code = env(home, name)
    cluster = find(home, to_stderr)
    if isinstance(cluster, PodCluster):
        print(f'export PATH={shlex.quote(str(cluster.helm.parent))}:"$PATH"')
        print(f"export HELM_3={shlex.quote(str(cluster.helm_3))}")
    return code


def build_node(_home: Path, _name: str) -> int:
    """build all that a node needs, Helm included, into the user's cache, unless it is there"""
    for bundle in FOR_PODS:
        print(binaries.ensure(to_stderr, bundle).folder)
    return 0


def build(_home: Path, _name: str) -> int:
    """build the control plane's programs into the user's cache, unless they are there"""
    print(binaries.ensure(to_stderr).folder)
    return 0


def keeper(home: Path, _name: str) -> int:
    """stop the cluster as soon as standard input ends (for programs that own a cluster)"""
    keep(home)
    return 0


COMMANDS: dict[str, Callable[[Path, str], int]] = {
    "up": up,
    "down": down,
    "status": status,
    "env": env,
    "prepare": prepare,
    "prepare-faults": prepare_faults,
    "prepare-node": prepare_node,
    "build": build,
    "build-node": build_node,
    "keep": keeper,
}

NODE_COMMANDS: dict[str, Callable[[Path, str], int]] = {"up": node_up, "down": down, "status": status, "env": node_env}


def load(home: Path, name: str, archive: Path) -> int:
    """load an image archive into a node"""
    cluster = find(home, to_stderr)
    if not isinstance(cluster, PodCluster):
        print(f"cluster {name}: no node runs in {home}; try: python -m e2e.cluster node up", file=sys.stderr)
        return EXIT_NOT_FOUND
    cluster.load_image(archive)
    return 0


def _describe(cluster: Cluster) -> None:
    print(f"provider:   {cluster.provider}")
    print(f"kubeconfig: {cluster.kubeconfig}")
    print(f"kubectl:    {cluster.kubectl}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description="A Kubernetes for tests and the demo.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        _add(commands, name, command, DEFAULT_NAME)
    node = commands.add_parser("node", help="the same for a node that runs pods: up, down, status, env, load")
    node_commands = node.add_subparsers(dest="node_command", required=True, metavar="COMMAND")
    for name, command in NODE_COMMANDS.items():
        _add(node_commands, name, command, DEFAULT_NODE_NAME)
    _add(node_commands, "load", load, DEFAULT_NODE_NAME).add_argument("archive", type=Path, help="an image archive")
    return parser


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    command: Callable[..., int],
    default: str,
) -> argparse.ArgumentParser:
    child = commands.add_parser(name, help=command.__doc__)
    child.add_argument("--name", default=default, help="the cluster's name (%(default)s)")
    child.add_argument("--state-dir", type=Path, help="its folder (.state/cluster-NAME in the checkout)")
    child.set_defaults(run=command)
    return child


if __name__ == "__main__":
    sys.exit(main())
