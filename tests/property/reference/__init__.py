"""The language once more, as naively as it can be written: an oracle for the state machine.

Invariant: nothing here imports the state machine, the model, the parser or the expression library; it reads manifests
as plain dictionaries. It counts nothing: after every event it passes over the whole graph again and again until nothing
changes. The trade-off is speed, against there being nothing clever that could be wrong.
"""

from tests.property.reference.script import Act, Outcome, Script
from tests.property.reference.simulation import Result, Simulation, interpret

__all__ = ["Act", "Outcome", "Result", "Script", "Simulation", "interpret"]
