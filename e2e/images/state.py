"""What a stage is so far, and the instructions that only describe it.

Invariant: a state is a value: an instruction makes another one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from e2e.images.dockerfile import Instruction, argument, expand


@dataclass(frozen=True, slots=True)
class State:
    """A root so far: its folders bottom first, the key of all that went in, and what the configuration says."""

    lowers: tuple[Path, ...] = ()
    digest: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    stop_signal: str = ""
    volumes: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()


_Change = Callable[[State, Instruction], State]
_CHANGES: Final[Mapping[str, _Change]] = {
    "CMD": lambda state, said: replace(state, command=tuple(said.vector())),
    "ENTRYPOINT": lambda state, said: replace(state, entrypoint=tuple(said.vector())),
    "ENV": lambda state, said: replace(state, environment={**state.environment, **said.pairs()}),
    "EXPOSE": lambda state, said: replace(state, ports=(*state.ports, *said.words())),
    "LABEL": lambda state, said: replace(state, labels={**state.labels, **said.pairs()}),
    "STOPSIGNAL": lambda state, said: replace(state, stop_signal=said.value),
    "USER": lambda state, said: replace(state, user=said.value),
    "VOLUME": lambda state, said: replace(state, volumes=(*state.volumes, *said.words())),
    "WORKDIR": lambda state, said: replace(state, folder=said.value),
}


def configure(state: State, said: Instruction, given: Mapping[str, str], common: Mapping[str, str]) -> State:
    """Return the state after an instruction that changes no file.

    An ARG takes its value from `given`, else from its own default, else from `common`, what stands before all stages.
    """
    if said.name == "ARG":
        name, default = argument(said)
        value = given.get(name, default or common.get(name, ""))
        return replace(state, arguments={**state.arguments, name: value})
    filled = replace(said, value=expand(said.value, {**state.arguments, **state.environment}))
    return _CHANGES[said.name](state, filled)
