"""What a long-running process says of itself to those who ask from outside: probes and metrics.

Operator and workers share it. Invariant: answering takes nothing but memory, and is done by a thread of its own, so
that a process whose event loop or database does not answer can still say so.
"""
