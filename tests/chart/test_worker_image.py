"""The values of examples/worker-image make a worker of that image."""

from __future__ import annotations

from tests.chart.helm import ROOT, Helm, one

VALUES = ROOT / "examples" / "worker-image" / "values.yaml"


def test_the_values_of_the_example_image(helm: Helm) -> None:
    worker = one(helm.trial("-f", str(VALUES)), "Deployment", "partita-worker-labels")
    assert worker["spec"]["replicas"] == 2
    (container,) = worker["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/labels:1"
    assert container["args"] == ["worker", "label_tasks:app", "--queue", "labels"]
    assert "command" not in container, "the image's own entry point is partita"
