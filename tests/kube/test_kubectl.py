"""What people do with kubectl, with its own binary: apply again, dry runs, generated names, waits, selectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster.errors import ClusterError
from partita.kube.resources import DEFINITIONS, RUNS, Resource
from partita.settings import Settings
from tests.kube.operated import APPROVAL, CHAIN, Namespace, Object, definition, operating, run, working

EVERY_FIELD = Path(__file__).parent / "manifests" / "every-field.yaml"
APPLY = (("apply",), ("apply", "--server-side"))


async def version(here: Namespace, resource: Resource, name: str) -> tuple[str, int]:
    metadata = (await here.get(resource, name))["metadata"]
    return metadata["resourceVersion"], metadata["generation"]


@pytest.mark.parametrize("how", APPLY)
async def test_applying_an_unchanged_manifest_changes_nothing(
    here: Namespace, operator_settings: Settings, how: tuple[str, ...]
) -> None:
    """A definition and a run that has finished, which a GitOps tool applies every few minutes."""
    documents = [definition("chain", CHAIN, retention={"maxFinishedRuns": 5}), run("one", "chain", input={"n": 1})]
    text = yaml.safe_dump_all(documents)
    async with operating(here, operator_settings), working(operator_settings):
        await here.kubectl(*how, "-f", "-", stdin=text)
        await here.phase("one", "Succeeded")
        await here.accepted("chain")
        before = [await version(here, DEFINITIONS, "chain"), await version(here, RUNS, "one")]
        for _ in range(2):
            said = await here.kubectl(*how, "-f", "-", stdin=text)
        assert [await version(here, DEFINITIONS, "chain"), await version(here, RUNS, "one")] == before
        if how == ("apply",):
            assert said.count("unchanged") == 2
        await here.kubectl("diff", *how[1:], "-f", "-", stdin=text)  # fails where something would change


async def test_a_signal_stays_when_the_manifest_is_applied_again(here: Namespace, operator_settings: Settings) -> None:
    """What is sent to a run is nobody's field of a manifest."""
    text = json.dumps(run("one", "approve"))
    async with operating(here, operator_settings):
        await here.create(definition("approve", [*APPROVAL, {"name": "more", "waitForEvent": {}}]))
        await here.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        await here.run_until("one", lambda status: "and" not in (status.get("waitingFor") or "and"), "waiting")
        await here.signal("one", "a1")
        await here.run_until("one", lambda status: bool(status.get("signals")), "taken over")
        await here.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        assert [each["id"] for each in (await here.get(RUNS, "one"))["spec"]["signals"]] == ["a1"]
        await here.phase("one", "Running")


async def test_dry_runs_leave_nothing(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings):
        for words in (("--dry-run=server",), ("--dry-run=client",), ("--server-side", "--dry-run=server")):
            assert "dry run" in await here.kubectl("apply", *words, "-f", str(EVERY_FIELD))
        broken = json.dumps(definition("broken", [{"name": "x"}]))
        with pytest.raises(ClusterError, match=r"spec\.nodes"):
            await here.kubectl("apply", "--dry-run=server", "-f", "-", stdin=broken)
        assert "No resources found" in await quiet(here, "get", "wfd,wfr")


async def quiet(here: Namespace, *words: str) -> str:
    """What kubectl prints, or that there is nothing."""
    return await here.kubectl(*words) or "No resources found"


async def test_names_may_be_generated(here: Namespace, operator_settings: Settings) -> None:
    manifest = run("", "chain")
    manifest["metadata"] = {"generateName": "nightly-"}
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("chain", CHAIN))
        names = []
        for _ in range(2):
            made = await here.kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(manifest))
            names.append(made.strip().rpartition("/")[2])
        for name in names:
            await here.phase(name, "Succeeded")
            assert name.startswith("nightly-")
    assert len(set(names)) == 2


async def test_lists_columns_and_selectors(here: Namespace, operator_settings: Settings) -> None:
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("chain", CHAIN))
        await here.create(definition("approve", APPROVAL))
        done, open_ = run("done", "chain"), run("open", "approve")
        done["metadata"]["labels"] = open_["metadata"]["labels"] = {"team": "a"}
        await here.create(done)
        await here.create(open_)
        await here.phase("done", "Succeeded")
        await here.phase("open", "Running")
        plain = await table(here)
        wide = await table(here, "-o", "wide")
        selected = [
            await table(here, "--field-selector", "status.phase=Succeeded"),
            await table(here, "--field-selector", "spec.definitionRef.name=chain"),
            await table(here, "-l", "team=a", "--field-selector", "status.phase!=Running"),
        ]
        waited = await here.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "wfr/done", "--timeout=10s")
    assert plain[0].split() == ["NAME", "DEFINITION", "PHASE", "PROGRESS", "WAITING", "AGE"]
    assert "event approval" in next(line for line in plain if line.startswith("open"))
    assert "RUN ID" in wide[0]
    assert "MESSAGE" in wide[0]
    for lines in selected:
        assert [line.split()[0] for line in lines[1:]] == ["done"]
    assert "condition met" in waited


async def table(here: Namespace, *words: str) -> list[str]:
    return (await here.kubectl("get", "wfr", *words)).splitlines()


async def test_waiting_for_a_finished_run_that_a_control_touches_again(
    here: Namespace, operator_settings: Settings
) -> None:
    async with operating(here, operator_settings), working(operator_settings):
        await here.create(definition("chain", CHAIN))
        await here.create(run("one", "chain"))
        await here.kubectl("wait", "--for=condition=Completed", "wfr/one", "--timeout=60s")
        controls: list[Object] = [{"suspend": True}, {"cancel": {}}, {"signals": [{"id": "late", "name": "nobody"}]}]
        for patch in controls:
            await here.kubectl("patch", "wfr", "one", "--type=merge", "-p", json.dumps({"spec": patch}))
            for condition in ("Completed", "Succeeded"):
                await here.kubectl("wait", f"--for=condition={condition}", "wfr/one", "--timeout=60s")
        body: dict[str, Any] = await here.get(RUNS, "one")
    assert body["status"]["phase"] == "Succeeded"
    assert body["status"]["observedGeneration"] == body["metadata"]["generation"] == 4


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("workflowdefinition.spec.retention", "Objects that a GitOps tool tracks stay"),
        ("workflowdefinition.spec.retention.maxFinishedRuns", "deleted before their time"),
        ("workflowengine.status.openRuns", "Runs that have not ended"),
        ("workflowengine.status.queues", "The fullest queues"),
        ("workflowrun.spec.ttlSecondsAfterFinished", "the record in PostgreSQL stays"),
    ],
)
async def test_explain_says_what_holds_now(here: Namespace, path: str, says: str) -> None:
    text = " ".join((await here.kubectl("explain", path)).split())
    assert says in text
    assert "Not in this version" not in text
