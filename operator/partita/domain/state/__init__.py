"""The state machine: ``decide(slice, event) → Effects | Need``.

``rows`` are the records a decision reads, ``events`` what may happen to a run, ``effects`` what must be written.
``foresee`` guesses what an event will read, ``absorb`` and ``merge`` let several events of a run share a transaction.
"""

from partita.domain.state.combine import absorb, merge
from partita.domain.state.decide import decide
from partita.domain.state.foresight import foresee

__all__ = ["absorb", "decide", "foresee", "merge"]
