"""Benchmarks: one small script a figure; ``python -m bench`` runs them all, ``python -m bench throughput`` one.

Invariant: figures are printed, never asserted, since time depends on the machine; what must hold everywhere (counts) is
tested elsewhere. Every script measures the real engine and the real worker on a server that writes durably.
"""
