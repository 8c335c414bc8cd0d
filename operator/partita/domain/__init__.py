"""The pure core: what a manifest means and what each event does to a run.

Nothing in this package does I/O, reads a clock or draws a random number; time arrives as an argument, and everything
that must vary (such as jitter) is derived from identifiers. That is what lets the same code run under the operator,
in a worker, in ``partita dev`` and in property tests.
"""
