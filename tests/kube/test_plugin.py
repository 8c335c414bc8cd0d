"""``kubectl partita`` as a plugin: found by the real kubectl, with the person's kubeconfig and without any database."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from partita.cli.exits import Exit
from partita.settings import Settings
from tests.kube.operated import APPROVAL, Namespace, definition, operating, run

APPROVE = definition("approve", APPROVAL, output={"by": "${nodes.approval.output.by}"})
PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The cluster's own kubectl, in a person's environment."""

    program: Path
    environment: Mapping[str, str]

    async def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors of one command."""
        done = await asyncio.to_thread(
            subprocess.run,
            [str(self.program), *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
async def kubectl(here: Namespace, tmp_path: Path) -> Kubectl:
    """kubectl with the plugin on its PATH, a kubeconfig whose context names the test's namespace, and no setting."""
    file = tmp_path / "kubeconfig"
    file.write_text(here.cluster.kubeconfig.read_text())
    await here.kubectl("config", "set-context", "--current", f"--namespace={here.name}", f"--kubeconfig={file}")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PARTITA_")}
    path = os.pathsep.join([str(PROGRAMS), "/usr/bin", "/bin"])  # kubectl complains of folders that do not exist
    return Kubectl(here.cluster.kubectl, {**clean, "KUBECONFIG": str(file), "PATH": path})


async def test_kubectl_finds_the_plugin_and_complains_of_nothing(kubectl: Kubectl) -> None:
    code, shown, errors = await kubectl("plugin", "list")
    assert code == Exit.OK, errors
    assert str(PROGRAMS / "kubectl-partita") in shown
    assert [line for line in errors.splitlines() if "partita" in line] == []  # overshadowed, not executable


async def test_runs_are_started_listed_shown_and_signalled(
    kubectl: Kubectl, here: Namespace, operator_settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump_all([APPROVE, run("one", "approve")]))
    async with operating(here, operator_settings):
        assert (await kubectl("partita", "submit", str(file)))[0] == Exit.OK
        await here.run_until("one", lambda status: status.get("waitingFor") == "event approval", "waiting")
        listed = json.loads((await kubectl("partita", "list", "-o", "json"))[1])
        assert [each["name"] for each in listed["runs"]] == ["one"]
        assert "waiting for event approval" in (await kubectl("partita", "get", "one", "-n", here.name))[1]
        code, shown, said = await kubectl("partita", "signal", "one", "approval", '{"by": "me"}')
        assert (code, shown, said) == (Exit.OK, "", "signal approval to one: Consumed\n")
        code, shown, _ = await kubectl("partita", "wait", "one")
        assert code == Exit.OK
        assert 'output: {"by":"me"}' in shown


async def test_what_a_person_may_not_do_is_said_and_has_an_exit_code_of_its_own(
    kubectl: Kubectl, here: Namespace
) -> None:
    token = (await here.kubectl("create", "token", "default")).strip()
    kubeconfig = f"--kubeconfig={kubectl.environment['KUBECONFIG']}"
    await here.kubectl("config", "set-credentials", "nobody", f"--token={token}", kubeconfig)
    await here.kubectl("config", "set-context", "--current", "--user=nobody", kubeconfig)
    code, _, errors = await kubectl("partita", "list")
    assert code == Exit.FORBIDDEN
    assert "try: kubectl auth can-i" in errors


async def test_kubectl_completes_its_words(kubectl: Kubectl) -> None:
    code, shown, errors = await kubectl("__complete", "partita", "s")
    assert code == Exit.OK, errors
    assert {line.split("\t")[0] for line in shown.splitlines()} == {"submit", "suspend", "signal", ":4"}
    _, shown, _ = await kubectl("__complete", "partita", "list", "--phase", "")
    assert shown.splitlines()[-1] == ":4"


async def test_kubectl_completes_names_of_runs(kubectl: Kubectl, here: Namespace) -> None:
    for name in ("order-1", "order-2", "parcel-1"):
        await here.create(run(name, "approve"))
    code, shown, errors = await kubectl("__complete", "partita", "get", "order")
    assert code == Exit.OK, errors
    assert {line.split("\t")[0] for line in shown.splitlines()} == {"order-1", "order-2", ":4"}
    other = (await kubectl("__complete", "partita", "get", "-n", "default", ""))[1]
    assert "order-1" not in other
