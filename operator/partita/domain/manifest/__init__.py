"""Manifests: from YAML to validated definitions and runs.

Invariant: all problems at once, each with the path of the value and what would be right.
"""

from partita.domain.manifest.definition import definition_from_spec, parse_definition
from partita.domain.manifest.files import load_documents
from partita.domain.manifest.inputs import prepare_input
from partita.domain.manifest.run import CancelControl, RunManifest, SignalControl, parse_run

__all__ = [
    "CancelControl",
    "RunManifest",
    "SignalControl",
    "definition_from_spec",
    "load_documents",
    "parse_definition",
    "parse_run",
    "prepare_input",
]
