"""The CRDs as templates of the chart, made of the files in crds/.

Helm never upgrades what lies in a chart's own crds/ folder; templates are upgraded, and the annotation keeps them, with
every object of theirs, when a release is uninstalled. Braces that Helm would take for a template's are written as text.
"""

from __future__ import annotations

import re
from pathlib import Path

HEAD = "{{- /* Made of crds/%s by scripts/chart_files.py. */}}\n{{- if .Values.crds.install }}\n"
MARKS = """\
  annotations:
    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
  labels:
    {{- include "partita.labels" (dict "root" . "component" "crd") | nindent 4 }}
"""
METADATA = re.compile(r"^metadata:\n  name: (\S+)\n  labels: \{[^\n]*\}\n", re.MULTILINE)


def template(source: Path) -> str:
    """The template of one CRD; raises ValueError where its metadata is not as expected."""
    text = re.sub(r"\{\{|\}\}", _as_text, _without_flow_ends(source.read_text("utf-8")))
    made, count = METADATA.subn(lambda found: f"metadata:\n  name: {found[1]}\n{MARKS}", text)
    if count != 1:
        raise ValueError(f"{source.name}: metadata: expected a name and then labels in one line")
    return (HEAD % source.name) + made + "{{- end }}\n"


def _as_text(braces: re.Match[str]) -> str:
    return '{{ "' + braces[0] + '" }}'


def _without_flow_ends(text: str) -> str:
    """Closing braces side by side end flow mappings and mean nothing to Helm; apart they need no escape."""
    while "}}" in text:
        text = text.replace("}}", "} }")
    return text
