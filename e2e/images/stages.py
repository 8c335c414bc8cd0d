"""Executes the stages of a Dockerfile, each step once for the same inputs.

Invariant: the key of a step is the hash of the step before it, of the instruction with its variables filled in, and of
the files it reads; so what follows a changed file is done again and nothing else.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from e2e.cluster.progress import Say, Stopwatch
from e2e.images import context as files
from e2e.images import debian, roots
from e2e.images.cache import Cache, key
from e2e.images.context import Context
from e2e.images.dockerfile import Dockerfile, Instruction, Stage
from e2e.images.errors import ImageError
from e2e.images.state import State, configure

SCRATCH = "scratch"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Builder:
    """Builds the last stage of a Dockerfile and the stages that it copies from."""

    dockerfile: Dockerfile
    contexts: Mapping[str, Context]
    """The build context under "", further ones under the names that `COPY --from` uses."""
    given: Mapping[str, str]
    """Build arguments."""
    wheels: Path
    cache: Cache
    say: Say
    done: dict[str, State] = field(default_factory=dict)
    """Stages by name, and images that are there already by the name that `FROM` has for them."""

    def last(self) -> State:
        """Return the state after the last stage."""
        return self._execute(self.dockerfile.stages[-1])

    def _stage(self, name: str) -> State:
        if name not in self.done:
            found = next((stage for stage in self.dockerfile.stages if stage.name == name), None)
            if found is None:
                raise ImageError(f"COPY --from={name}: no stage and no context of this name")
            self.done[name] = self._execute(found)
        return self.done[name]

    def _execute(self, stage: Stage) -> State:
        state = replace(self._origin(stage.base), arguments={})
        for instruction in stage.instructions:
            state = self._step(stage, state, instruction)
        return state

    def _origin(self, base: str) -> State:
        if base == SCRATCH:
            return State(digest=SCRATCH)
        if base in self.done or any(stage.name == base for stage in self.dockerfile.stages):
            return self._stage(base)
        root = debian.base(base, self.cache, self.say)
        return State(lowers=(root,), digest=root.name, environment={"PATH": DEFAULT_PATH})

    def _step(self, stage: Stage, state: State, instruction: Instruction) -> State:
        try:
            if instruction.name == "RUN":
                return self._run(state, instruction)
            if instruction.name == "COPY":
                return self._copy(state, instruction)
            return configure(state, instruction, self.given, self.dockerfile.arguments)
        except ImageError as error:
            raise ImageError(
                f"stage {stage.name or 'last'}, line {instruction.line}: {instruction.name}: {error}"
            ) from error

    def _run(self, state: State, instruction: Instruction) -> State:
        if not state.lowers:
            raise ImageError("a stage from scratch has nothing to run")
        variables = {**state.arguments, **state.environment}
        digest = key(state.digest, instruction.value, sorted(variables.items()), state.folder, self.wheels.name)

        def make(upper: Path) -> None:
            watch = Stopwatch()
            place = upper / state.folder.lstrip("/")
            files.make_folders(place)
            roots.run(
                state.lowers, upper, instruction.value, folder=state.folder, variables=variables, house=self.wheels
            )
            self.say(f"line {instruction.line}: {instruction.value[:60]} … took {watch}")

        return self._advance(state, digest, make)

    def _copy(self, state: State, instruction: Instruction) -> State:
        *sources, target = instruction.words()
        place = target if target.startswith("/") else f"{state.folder.rstrip('/')}/{target}"
        origin, owner = instruction.flags.get("from", ""), instruction.flags.get("chown", "")
        if unknown := instruction.flags.keys() - {"from", "chown"}:
            raise ImageError(f"--{min(unknown)}: expected --from or --chown")
        if any("*" in source for source in sources):
            raise ImageError(f"{instruction.value}: wildcards are not understood here; name the folder")
        return self._copy_from(state, origin, tuple(sources), place, owner)

    def _copy_from(self, state: State, origin: str, sources: tuple[str, ...], place: str, owner: str) -> State:
        context = self.contexts.get(origin)
        other = None if context is not None else self._stage(origin)
        read = [context.digest(name) for name in sources] if context is not None else [other.digest if other else ""]
        digest = key(state.digest, "COPY", sources, place, owner, read)

        def make(upper: Path) -> None:
            target = upper / place.strip("/")
            if context is not None:
                _copy_context(context, sources, target, into=place.endswith("/"))
            elif other is not None:
                _copy_stage(other, sources, target, into=place.endswith("/"))
            if owner:
                _own(target, *(int(number) for number in owner.split(":")))

        return self._advance(state, digest, make)

    def _advance(self, state: State, digest: str, make: Callable[[Path], None]) -> State:
        upper = self.cache.ensure("steps", digest, make)
        return replace(state, lowers=(*state.lowers, upper), digest=digest)


def _copy_context(context: Context, sources: tuple[str, ...], target: Path, *, into: bool) -> None:
    for source in sources:
        found = context.files(source)
        whole = "" in found and (into or len(sources) > 1)
        files.copy(found, target / Path(source).name if whole else target)


def _copy_stage(other: State, sources: tuple[str, ...], target: Path, *, into: bool) -> None:
    files.make_folders(target if into else target.parent)
    folders = [f"{source.rstrip('/')}/." if source.endswith("/") else source for source in sources]
    roots.copy_out(other.lowers, folders, target)


def _own(target: Path, user: int, group: int) -> None:
    for path in (target, *target.rglob("*")):
        shutil.chown(path, user, group)
