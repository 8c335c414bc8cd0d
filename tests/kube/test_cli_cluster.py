"""The command line on a cluster: as ``partita --kubeconfig`` and as the plugin that kubectl finds."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from partita.cli import cluster as cluster_backend
from partita.cli.exits import Exit
from partita.settings import Settings
from tests.cli.commands import Cli, Result
from tests.kube.operated import APPROVAL, Namespace, definition, operating, run

APPROVE = definition("approve", APPROVAL, output={"by": "${nodes.approval.output.by}"})
ONE = run("one", "approve", tags=["blue"])


@dataclass(frozen=True, slots=True)
class Terminal:
    """Calls ``partita`` on the test's cluster, in a thread beside the operator."""

    cli: Cli
    here: Namespace
    folder: Path

    async def __call__(self, *words: str, kubeconfig: Path | None = None) -> Result:
        """One command in the test's namespace."""
        place = ("--kubeconfig", str(kubeconfig or self.here.cluster.kubeconfig))
        return await asyncio.to_thread(self.cli, *words, *place)

    async def there(self, *words: str) -> Result:
        """The same, with the namespace named."""
        return await self(*words, "-n", self.here.name)

    def manifest(self, *documents: object) -> str:
        """A file with these documents."""
        file = self.folder / "manifest.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return str(file)

    async def kubeconfig(self, *changes: tuple[str, ...]) -> Path:
        """A copy of the kubeconfig, changed by ``kubectl config``."""
        copy = self.folder / "kubeconfig"
        copy.write_text(self.here.cluster.kubeconfig.read_text())
        for change in changes:
            await asyncio.to_thread(self.here.cluster.run_kubectl, "config", *change, f"--kubeconfig={copy}")
        return copy


@pytest.fixture
def partita(
    here: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """The command line with nothing in its environment but a database, which a named cluster wins over."""
    monkeypatch.setenv("PARTITA_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    return Terminal(Cli(monkeypatch, capsys), here, tmp_path)


async def test_a_run_from_submit_to_its_output(partita: Terminal, here: Namespace, operator_settings: Settings) -> None:
    file = partita.manifest(APPROVE, ONE)
    async with operating(here, operator_settings):
        submitted = await partita.there("submit", file)
        assert submitted.code == Exit.OK, submitted.err
        assert submitted.out.count(" created") == 2
        assert f"follow it: partita watch one -n {here.name}" in submitted.err
        await here.run_until("one", lambda status: status.get("waitingFor") == "event approval", "waiting")
        listed = await partita.there("list", "--phase", "running")
        assert (listed.code, listed.err) == (Exit.OK, "")
        head = " ".join(listed.out.split("\n")[0].split())
        assert head == "NAMESPACE NAME DEFINITION PHASE PROGRESS WAITING AGE RUN ID"
        assert f"{here.name}   one    approve" in listed.out
        assert "waiting for event approval" in (await partita.there("get", "one")).out
        sent = await partita.there("signal", "one", "approval", '{"by": "me"}', "--id", "s1", "-o", "json")
        assert sent.json == {"run": "one", "signal": "approval", "id": "s1", "state": "Consumed"}
        waited = await partita.there("wait", "one", "-o", "json")
    assert (waited.code, waited.json["output"]) == (Exit.OK, {"by": "me"})
    watched = await partita.there("watch", "one")
    assert 'output: {"by":"me"}' in watched.out
    again = await partita.there("submit", file, "-o", "json")
    assert [item["result"] for item in again.json] == ["unchanged", "unchanged"]
    assert again.json[1]["id"] == waited.json["run"]["id"]


async def test_a_changed_definition_is_said(partita: Terminal) -> None:
    await partita.there("submit", partita.manifest(APPROVE))
    changed = await partita.there("submit", partita.manifest(definition("approve", APPROVAL)), "-o", "json")
    assert [item["result"] for item in changed.json] == ["changed"]


async def test_the_namespace_is_the_context_s(partita: Terminal, here: Namespace) -> None:
    kubeconfig = await partita.kubeconfig(("set-context", "--current", f"--namespace={here.name}"))
    assert (await partita("submit", partita.manifest(APPROVE, ONE), kubeconfig=kubeconfig)).code == Exit.OK
    assert [run["name"] for run in (await partita("list", "-o", "json", kubeconfig=kubeconfig)).json["runs"]] == ["one"]
    assert (await partita("get", "one", kubeconfig=kubeconfig)).code == Exit.OK
    assert (await partita("get", "one")).code == Exit.NOT_FOUND
    everywhere = (await partita("list", "-A", "-o", "json")).json["runs"]
    assert here.name in {run["namespace"] for run in everywhere}


async def test_a_context_is_chosen_by_its_name(partita: Terminal, here: Namespace) -> None:
    user = json.loads(await here.kubectl("config", "view", "-o", "json"))["contexts"][0]["context"]
    kubeconfig = await partita.kubeconfig(
        ("set-context", "other", f"--cluster={user['cluster']}", f"--user={user['user']}", f"--namespace={here.name}"),
        ("set-context", "--current", "--cluster=nowhere"),
    )
    assert (await partita("list", kubeconfig=kubeconfig)).code == Exit.UNAVAILABLE
    assert (await partita("list", "--context", "other", kubeconfig=kubeconfig)).code == Exit.OK
    missing = await partita("list", "--context", "absent", kubeconfig=kubeconfig)
    assert missing.code == Exit.UNAVAILABLE
    assert "absent" in missing.err


async def test_credentials_that_may_not(partita: Terminal, here: Namespace) -> None:
    token = (await here.kubectl("create", "token", "default")).strip()
    kubeconfig = await partita.kubeconfig(
        ("set-credentials", "nobody", f"--token={token}"), ("set-context", "--current", "--user=nobody")
    )
    refused = await partita("list", "-n", here.name, kubeconfig=kubeconfig)
    assert refused.code == Exit.FORBIDDEN
    assert "try: kubectl auth can-i" in refused.err


async def test_without_an_operator_a_change_is_sent_and_said_to_be_unanswered(
    partita: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_backend, "_ANSWER_SECONDS", 0.2)
    await partita.there("submit", partita.manifest(APPROVE, ONE))
    assert "the operator has not answered yet" in (await partita.there("suspend", "one")).err
    assert (await partita.there("signal", "one", "approval", "-o", "json")).json["state"] == "Sent"
    assert (await partita.there("cancel", "one", "-o", "json")).json["answered"] is False


async def test_a_run_without_its_definition_waits_for_it(
    partita: Terminal, here: Namespace, operator_settings: Settings
) -> None:
    async with operating(here, operator_settings):
        refused = await partita.there("submit", partita.manifest(ONE))
        assert refused.code == Exit.NOT_FOUND
        assert f"WorkflowDefinition {here.name}/approve: does not exist" in refused.err
        await here.create(ONE)
        await here.run_until("one", lambda status: bool(status.get("waitingFor")), "waiting")
        waited = await partita.there("wait", "one", "--timeout", "0s")
    assert waited.code == Exit.TIMEOUT
    assert "still Pending after 0 s, waiting for its definition" in waited.err


@pytest.mark.parametrize(
    "words",
    [
        *(("list", "--tag", "blue"), ("list", "--cursor", "x"), ("list", "--parent", "one"), ("list", "--since", "1h")),
        *(("list", "--attribute", "a=b"), ("list", "--started-by", "me"), ("get", "one", "--node", "a")),
    ],
)
async def test_what_only_the_database_can_do_is_said(partita: Terminal, words: tuple[str, ...]) -> None:
    refused = await partita(*words)
    assert refused.code == Exit.USAGE
    assert "needs the database" in refused.err


async def test_what_the_api_server_refuses_is_one_line(partita: Terminal) -> None:
    await partita.there("submit", partita.manifest(APPROVE, ONE))
    refused = await partita.there("submit", partita.manifest(run("one", "approve", tags=["red"])))
    assert refused.code == Exit.USAGE
    assert "tags are fixed once the run exists" in refused.err
    assert refused.err.count("\n") == 1


async def test_kubectl_finds_the_plugin(partita: Terminal, here: Namespace, operator_settings: Settings) -> None:
    kubeconfig = await partita.kubeconfig(("set-context", "--current", f"--namespace={here.name}"))
    folders = [str(Path(sys.executable).parent), str(here.cluster.kubectl.parent), os.environ["PATH"]]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": os.pathsep.join(folders)}

    async def kubectl(*words: str) -> tuple[int, str]:
        command = [str(here.cluster.kubectl), *words]
        done = await asyncio.to_thread(
            subprocess.run, command, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        return done.returncode, done.stdout + done.stderr

    assert "kubectl-partita" in (await kubectl("plugin", "list"))[1]
    async with operating(here, operator_settings):
        code, shown = await kubectl("partita", "submit", partita.manifest(APPROVE, ONE))
        assert code == Exit.OK, shown
        code, shown = await kubectl("partita", "signal", "one", "approval", '{"by": "me"}')
        assert (code, shown) == (Exit.OK, "signal approval to one: Consumed\n")
        code, shown = await kubectl("partita", "wait", "one")
        assert code == Exit.OK
        assert 'output: {"by":"me"}' in shown
    code, shown = await kubectl("partita", "get", "nobody")
    assert (code, shown) == (
        Exit.NOT_FOUND,
        f"error: run {here.name}/nobody: does not exist; try: kubectl partita list -n {here.name}\n",
    )
