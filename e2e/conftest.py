"""What all end-to-end tests share: one node, what is installed on it, and what a failed test on it says besides.

The fixtures of the node are taken in here and nowhere else, since each module that imported one would get its own.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from e2e.chart.fixtures import chart_node, outside, product, shared_release
from e2e.chart.release import Release
from e2e.cluster.fixtures import node, node_namespace

__all__ = ["chart_node", "node", "node_namespace", "outside", "product", "shared_release"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what pods and events say to the report of a failure."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Release):
                report.sections.append(("kubectl get pods,events", value.explain()))
    return report
