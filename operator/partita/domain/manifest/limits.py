"""Sizes that manifests may have."""

from __future__ import annotations

from typing import Final

SPEC_BYTES: Final = 524_288
"""A definition's spec as JSON."""
INPUT_BYTES: Final = 1_048_576
"""A run's input as JSON, defaults included."""
NODES: Final = 1_000
"""Of a flow, and of a definition with its subflows; nodes of ``finally`` have a limit of their own."""
NAME: Final = 63
"""Characters of a node's name."""
FINALLY_NODES: Final = 32
SUBFLOWS: Final = 32
PARALLEL: Final = 10_000
"""``maxParallel``, ``maxFailures`` and ``joinCount`` of a forEach."""
DEFAULT_PARALLEL: Final = 100
ITERATIONS: Final = 1_000_000
DEFAULT_ITERATIONS: Final = 1_000
TTL_SECONDS: Final = 3_153_600_000
FINISHED_RUNS: Final = 1_000_000
"""``retention.maxFinishedRuns``."""
VERSION: Final = 2_147_483_647
CANCEL_NODES: Final = 256
DEPENDS_ON: Final = 64
NEXT: Final = 64
CASES: Final = 64
TIERS: Final = 8
ROUTES: Final = 16
MATCHES: Final = 16
ALTERNATIVES: Final = 16
DESCRIPTION: Final = 4_096
NODE_DESCRIPTION: Final = 1_024
CONDITION: Final = 4_096
MESSAGE: Final = 4_096
"""``fail.message``."""
SHORT: Final = 1_024
"""Durations and names that may be written as expressions."""
PROBLEMS: Final = 200
"""Problems listed of one manifest; more than a person reads, less than a hostile manifest could make."""
UNLIMITED_RETRIES: Final = 2_147_483_647
"""``maxRetries`` of a tier that leaves it out."""
EXCLUSIVITY_WORK: Final = 500_000
"""Steps of the search for joins that can never fire; larger graphs are accepted without it."""
