"""What a failed test on a node says besides: the pods and events of the release that it used."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from e2e.chart.release import Release


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
