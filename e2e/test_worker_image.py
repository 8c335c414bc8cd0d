"""An image of one's own as docs/images.md shows it: built step by step on the product's image, and executing a run."""

import shutil
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.cluster.progress import quietly
from e2e.images import Image, ImageError
from e2e.images import cache as caches
from e2e.images.build import ROOT
from e2e.images.context import Context
from e2e.images.dockerfile import read
from e2e.images.layers import layer
from e2e.images.running import running
from e2e.images.stages import Builder
from e2e.images.wheels import FILES, wheelhouse
from e2e.test_images import NOT_WANTED
from e2e.test_images_running import (
    BUILD_SECONDS,
    SECONDS,
    archives,
    database,
    finished,
    migrated,
    partita,
    postgres,
    stopped,
)

__all__ = ["archives", "database", "migrated", "partita", "postgres"]

EXAMPLE = ROOT / "examples" / "worker-image"
pytestmark = pytest.mark.timeout(BUILD_SECONDS)


@pytest.fixture(scope="module")
def labels(partita: Image, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The example's image; what its Dockerfile calls Partita's image is the one of this checkout."""
    return built(EXAMPLE, partita, tmp_path_factory.mktemp("requirements"))


def built(context: Path, partita: Image, pins: Path) -> Image:
    """The image of the example's Dockerfile and the files of `context`; its packages are downloaded beforehand."""
    used = caches.default()
    for name in FILES:
        shutil.copyfile(EXAMPLE / "requirements.txt", pins / name)
    dockerfile = read(EXAMPLE / "Dockerfile")
    done = {dockerfile.arguments["PARTITA_IMAGE"]: partita.state}
    with used.only_user(lambda: None):
        wheels = wheelhouse(pins, used, quietly)
        state = Builder(dockerfile, {"": Context(context)}, {}, wheels, used, quietly, done).last()
        return replace(partita, state=state, layers=tuple(layer(folder, used) for folder in state.lowers))


def test_its_dockerfile_names_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert read(EXAMPLE / "Dockerfile").arguments["PARTITA_IMAGE"] == f"ghcr.io/partita/partita:{version}"


def test_it_adds_one_layer_with_the_tasks_and_what_they_need(labels: Image, partita: Image) -> None:
    *below, added = labels.layers
    assert tuple(below) == partita.layers
    with tarfile.open(added.path) as tar:
        names = [entry.name for entry in tar.getmembers() if not entry.isdir()]
    packages = {name.removeprefix("opt/partita/lib/python3.11/site-packages/").split("/")[0] for name in names}
    assert {"label_tasks.py", "humanize"} <= packages
    assert "yaml" not in packages, "what Partita's image has already is not installed again"
    assert [name for name in names if NOT_WANTED.fullmatch(name)] == []


def test_another_version_of_what_partita_has_is_refused(partita: Image, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "context")
    (tmp_path / "context" / "requirements.txt").write_text(f"pyyaml==5.1 --hash=sha256:{'0' * 64}\n")
    (tmp_path / "pins").mkdir()
    with pytest.raises(ImageError, match=r"The user requested \(constraint\) pyyaml=="):
        built(tmp_path / "context", partita, tmp_path / "pins")


def test_user_and_entry_point_are_those_of_partita(labels: Image) -> None:
    assert (labels.state.user, labels.state.entrypoint) == ("65532:65532", ("partita",))


def test_its_worker_executes_a_run_on_a_root_that_cannot_be_written_to(
    labels: Image, migrated: dict[str, str], tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    shutil.copyfile(EXAMPLE / "parcel.yaml", tmp_path / "parcel.yaml")
    files = {"/run": tmp_path}
    with running(labels, ["worker", "label_tasks:app", "--queue", "labels"], variables=migrated) as worker:
        worker.wait_for(" serves write-label in queues labels", SECONDS)
        with running(labels, ["submit", "/run/parcel.yaml"], variables=migrated, writable=files) as submit:
            assert submit.wait(SECONDS) == 0, submit.output
        assert 'output: {"label":"p-1: 1.50 kg"}' in finished(labels, ["wait", "parcel-1"], migrated)
        assert stopped(worker) == 0, worker.output
