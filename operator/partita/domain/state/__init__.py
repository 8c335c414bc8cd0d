"""The state machine: ``decide(slice, event) → Effects | Need``.

``rows`` are the records a decision reads, ``events`` what may happen to a run, ``effects`` what must be written.
``foresee`` guesses what an event will read, ``absorb`` and ``merge`` let several events of a run share a transaction.

One folder, since its parts lean on one another. A file imports files of its own line and of those above it only:

- what is read and written: rows, events, slices, effects, copies, combine
- one decision in the making: plan, likeness, repeats, reading, draft, and what it will read: ahead, foresight
- what expressions see: liveness, parts, scope
- how a row ends: retry, late_results, releasing, node_cancels, ending, failing
- work and waits begin: children, launching, taking, waiting, mailbox, end_nodes
- loops: course, items, foreach, repeat, loops
- the way through the run and to its end: nodes, edges, parking, undo, closing
- events: attempts, child_ends, shared_mailbox, controls, lifecycle, decide
"""

from partita.domain.state.combine import absorb, merge
from partita.domain.state.decide import decide
from partita.domain.state.foresight import foresee, foreseen

__all__ = ["absorb", "decide", "foresee", "foreseen", "merge"]
