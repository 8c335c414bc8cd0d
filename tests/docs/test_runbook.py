"""The runbook has a part for each alert of the chart, where the alert's link leads."""

from __future__ import annotations

import re

import yaml

from tests.docs.blocks import ROOT


def test_every_alert_has_its_part() -> None:
    rules = yaml.safe_load((ROOT / "charts/partita/files/alerts.yaml").read_text())["groups"][0]["rules"]
    parts = re.findall(r"^## (\w+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    assert parts == [rule["alert"] for rule in rules]
    anchors = [rule["annotations"]["runbook_url"] for rule in rules]
    assert anchors == [f"RUNBOOK#{part.lower()}" for part in parts]
