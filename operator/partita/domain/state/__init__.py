"""The state machine: ``decide(slice, event) → Effects | Need``.

``rows`` are the records a decision reads, ``events`` what may happen to a run, ``effects`` what must be written.
"""
