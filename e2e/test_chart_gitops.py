"""Manifests in a folder that is applied again and again, as GitOps tools do: what did not change changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.chart.release import Release
from e2e.chart.runs import GO, recorded, runs_of, succeed

KINDS = "wfd,wfr"
LABEL = "app.example.com/part-of"
VERSIONS = "jsonpath={range .items[*]}{.metadata.name} {.metadata.resourceVersion} {.metadata.generation}{'\\n'}{end}"
DEFINITION = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: NAME, labels: {app.example.com/part-of: LABEL}}
spec:
  nodes:
    - {name: before, task: {type: tell}, input: {text: "${input.text}"}}
    - {name: go, dependsOn: [before], waitForEvent: {name: go}}
    - {name: after, dependsOn: [go], task: {type: tell}, input: {text: "${nodes.before.output.told}"}}
"""
RUN = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: NAME, labels: {app.example.com/part-of: LABEL}}
spec: {definitionRef: {name: LABEL-kept}, input: {text: NAME}}
"""
WAYS = {"client-side": (), "server-side": ("--server-side", "--field-manager=gitops")}


def written(folder: Path, part_of: str) -> Path:
    """A folder with two definitions, and two runs of one of them."""
    folder.mkdir()
    for name in ("kept", "pruned"):
        text = DEFINITION.replace("NAME", f"{part_of}-{name}").replace("LABEL", part_of)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    for name in ("ended", "waiting"):
        text = RUN.replace("NAME", f"{part_of}-{name}").replace("LABEL", part_of)
        (folder / f"run-{name}.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("way", list(WAYS))
def test_applying_again_changes_nothing_and_a_pruned_definition_finishes_its_runs(
    product: Release, tmp_path: Path, way: str
) -> None:
    folder = written(tmp_path / "manifests", way)
    apply = ("apply", "-f", str(folder), *WAYS[way])
    product.kubectl(*apply)
    settle(product, way)
    before = product.kubectl("get", KINDS, "-l", f"{LABEL}={way}", "-o", VERSIONS)
    assert before.count("\n") == 4
    assert product.kubectl("diff", "-f", str(folder), *WAYS[way]) == ""
    told = product.kubectl(*apply).splitlines()
    assert len(told) == 4
    assert way == "server-side" or all(line.endswith(" unchanged") for line in told), told
    noticed(product, f"{way}-probe")
    assert product.kubectl("get", KINDS, "-l", f"{LABEL}={way}", "-o", VERSIONS) == before
    prune(product, folder, way)


def settle(product: Release, way: str) -> None:
    """Bring the objects to rest: one run has ended, the others wait, of the definition that is pruned later too."""
    late = f"{way}-late"
    product.kubectl("apply", "-f", "-", stdin=runs_of(f"{way}-pruned", late))
    for name in (f"{way}-ended", f"{way}-waiting", late):
        product.wait(f"wfr/{name}", "jsonpath={.status.waitingFor}")
    product.kubectl("patch", "wfr", f"{way}-ended", "--type=json", "-p", GO)
    succeed(product, f"{way}-ended")


def noticed(product: Release, run: str) -> None:
    """Let a later run end, by which time the operator has seen whatever was applied before."""
    product.kubectl("apply", "-f", "-", stdin=runs_of("steps", run))
    succeed(product, run)


def prune(product: Release, folder: Path, way: str) -> None:
    """Take a definition out of the folder: applying removes it, and its run goes on to its end."""
    (folder / "pruned.yaml").unlink()
    if way == "client-side":
        kinds = [f"--prune-allowlist=partita.dev/v1alpha1/Workflow{kind}" for kind in ("Definition", "Run")]
        told = product.kubectl("apply", "-f", str(folder), "--prune", "-l", f"{LABEL}={way}", *kinds)
        assert f"{way}-pruned pruned" in told
    else:  # of which kubectl prunes nothing
        product.kubectl("delete", "wfd", f"{way}-pruned", "--timeout=20s")
    product.kubectl("wait", f"wfd/{way}-pruned", "--for=delete", "--timeout=20s")
    noticed(product, f"{way}-after-pruning")
    late = f"{way}-late"
    product.kubectl("patch", "wfr", late, "--type=json", "-p", GO)
    succeed(product, late)
    assert recorded(product.sql, late) == [(late, "after"), (late, "before")]
    assert product.kubectl("get", "wfr", f"{way}-waiting", "-o", "jsonpath={.status.phase}") == "Running"
