"""Values that cannot work are refused before anything is sent, with words that name them."""

from __future__ import annotations

import pytest

from tests.chart.helm import CHART, CI, TRIAL, Helm, HelmError

URL = "database.url=postgresql://a@b/c"


def test_lint_is_content_with_every_values_file(either_helm: Helm) -> None:
    for path in CI:
        either_helm("lint", "--strict", str(CHART), "-f", str(path))


def test_both_helms_render_the_same(helm: Helm, either_helm: Helm) -> None:
    for path in CI:
        made = [
            each for each in either_helm.template("-f", str(path)) if each["metadata"]["name"] != "partita-postgresql"
        ]
        other = [each for each in helm.template("-f", str(path)) if each["metadata"]["name"] != "partita-postgresql"]
        assert made == other, path.name


def test_without_a_database_the_values_are_named(either_helm: Helm) -> None:
    with pytest.raises(
        HelmError, match=r"database: nothing is set.*existingSecret\.name.*postgresql\.embedded\.enabled"
    ):
        either_helm.template()


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("operater.replicas=2", "operater"),
        ("operator.replica=2", "replica"),
        ("operator.replicas=two", "replicas"),
        ("operator.replicas=-1", "replicas"),
        ("operator.logLevel=LOUD", "logLevel"),
        ("settings.engine.batch_size=5", "batch_size"),
        ("settings.engine.batchSize=5001", "batchSize"),
        ("settings.worker.queues={a}", "queues"),
        ("maintenance.drop.schedule=every day", "schedule"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("database.tls.mode=verify", "mode"),
        ("workers.Big.app=tasks", "Big"),
        ("workers.shop.apps=tasks", "apps"),
        ("workers.shop.settings.worker.stopGrace=1", "stopGrace"),
        ("operator.resources.limits.memory=lots", "memory"),
        ("postgresql.embedded.password=short", "password"),
        ("clusterUid=a b", "clusterUid"),
    ],
)
def test_the_schema_names_what_it_refuses(either_helm: Helm, setting: str, expected: str) -> None:
    with pytest.raises(HelmError, match=expected):
        either_helm.template(*TRIAL, "--set", setting)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((URL, "database.existingSecret.name=a"), "database.url"),
        ((URL, "postgresql.embedded.enabled=true"), "postgresql.embedded.enabled"),
        ((URL, "database.read.url=postgresql://x", "database.read.existingSecret.name=a"), "database.read.url"),
        ((URL, "database.pooled=true"), "database.migrations.existingSecret.name"),
        ((URL, "database.tls.mode=verify-full"), "database.tls.ca.secretName"),
        ((URL, "database.tls.ca.secretName=a", "database.tls.ca.configMapName=b"), "database.tls.ca"),
        ((URL, "watchNamespaces={a}"), "get namespace kube-system"),
        ((URL, "workers.shop.replicas=2"), "workers.shop.app"),
    ],
)
def test_values_that_contradict_each_other_are_refused(helm: Helm, settings: tuple[str, ...], expected: str) -> None:
    with pytest.raises(HelmError, match=expected):
        helm.template(*(word for setting in settings for word in ("--set", setting)))
