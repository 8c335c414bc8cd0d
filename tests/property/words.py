"""Expressions for generated definitions, of the closed set that the reference evaluates."""

from __future__ import annotations

from random import Random


class Words:
    """Draws expressions for one place: what may be named there is known."""

    def __init__(self, random: Random, nodes: list[str], *, settled: bool) -> None:
        self.random, self.nodes, self.settled = random, nodes, settled
        self.extra: list[str] = []
        """Values that only this place has."""

    def value(self, *, risky: bool = True) -> object:
        """A value; with ``risky`` also one that may be an error."""
        options: list[object] = [5, "${input.k}", "k=${input.k}", "${config.c}", "${input.k + 1}"]
        options += self.extra * 3
        for node in self.nodes:
            options += [f"${{nodes.{node}.output}}", f"${{get(nodes, '{node}.output.attempt', 0)}}"]
            options.append(f"${{get(nodes, '{node}.error.type', 'none')}}")
        if self.nodes and risky:
            options.append(f"${{nodes.{self.nodes[0]}.output.attempt}}")
            options += ["${from.map(f, f.node)}", "${from.map(f, get(f, 'error.type', 'none'))}"]
        if risky and self.random.randrange(8) == 0:
            options = ["${input.missing}"]
        return self.random.choice(options)

    def condition(self) -> str:
        """A condition, seldom one that is none."""
        options = ["${input.yes}", "${input.yes}", "${input.no}", "${!input.no}", "${input.k >= 2}"]
        for node in self.nodes:
            options += [f"${{nodes.{node}.output == null}}", f"${{get(nodes, '{node}.error.type', 'none') == 'boom'}}"]
            if self.settled:
                options.append(f"${{nodes.{node}.state == 'Completed'}}")
        if self.random.randrange(12) == 0:
            options = ["${input.k}"]
        return self.random.choice(options)

    def items(self) -> list[str]:
        """What may be items and need not be."""
        return [f"${{nodes.{node}.output}}" for node in self.nodes] if self.random.randrange(3) == 0 else []
