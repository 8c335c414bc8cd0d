"""The Dockerfile and the image made from it: what stands in it, that it is reproducible, and what a change costs."""

import json
import re
import shutil
import stat
import tarfile
import tomllib
from pathlib import Path

import pytest

from e2e.images import Image, ImageError, build, problem
from e2e.images.build import ROOT
from e2e.images.cache import Cache, default
from e2e.images.context import Context, checkout
from e2e.images.debian import STANDS_FOR
from e2e.images.dockerfile import expand, parse, read
from e2e.images.layers import file_digest, pack

DOCKERFILE = ROOT / "Dockerfile"
LABELS = ("title", "description", "source", "version", "revision", "created", "licenses")
SBOM = "usr/share/sbom/partita.cdx.json"
NOT_WANTED = re.compile(r"(?:.*/)?(?:sh|bash|dash|busybox|apt(?:-get)?|dpkg|pip\d*|su|mount|perl|gcc|curl|wget)")
BUILD_SECONDS = 900


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image of this checkout."""
    if (missing := problem()) is not None:
        pytest.skip(missing)
    return build("partita", tmp_path_factory.mktemp("images"))


def members(image: Image) -> list[tarfile.TarInfo]:
    """Every entry of every layer."""
    found: list[tarfile.TarInfo] = []
    for layer in image.layers:
        with tarfile.open(layer.path) as tar:
            found += tar.getmembers()
    return found


def content(image: Image, name: str) -> str:
    """The text of a file in the image."""
    for layer in reversed(image.layers):
        with tarfile.open(layer.path) as tar:
            if name in tar.getnames():
                file = tar.extractfile(name)
                assert file is not None
                return file.read().decode()
    raise AssertionError(f"{name} is not in the image")


def pins(file: str) -> dict[str, str]:
    """Name and version of every pinned package of a requirements file that Linux installs."""
    lines = (ROOT / "requirements" / file).read_text("utf-8").splitlines()
    found = (re.match(r"([A-Za-z0-9._-]+)==(\S+)(.*)", line) for line in lines if "== 'win32'" not in line)
    return {one[1]: one[2] for one in found if one}


def test_the_final_stage_starts_from_nothing_and_runs_without_a_shell() -> None:
    last = read(DOCKERFILE).stages[-1]
    said = {instruction.name: instruction for instruction in last.instructions}
    assert last.base == "scratch"
    assert said["USER"].value == "65532:65532"
    assert said["ENTRYPOINT"].vector() == ["partita"]
    assert "RUN" not in said


def test_what_the_dockerfile_repeats_is_true() -> None:
    dockerfile = read(DOCKERFILE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    arguments = [one.value for stage in dockerfile.stages for one in stage.instructions if one.name == "ARG"]
    assert set(filter(lambda value: value.startswith("VERSION="), arguments)) == {f"VERSION={project['version']}"}
    labels = next(one for one in dockerfile.stages[-1].instructions if one.name == "LABEL").pairs()
    assert {f"org.opencontainers.image.{name}" for name in LABELS} <= labels.keys()
    assert labels["org.opencontainers.image.description"] == project["description"]
    assert labels["org.opencontainers.image.licenses"] == project["license"]


def test_only_a_known_public_base_is_used() -> None:
    stages = read(DOCKERFILE).stages
    names = {stage.name for stage in stages}
    assert {stage.base for stage in stages} - names - {"scratch"} == set(STANDS_FOR)


def test_the_build_context_holds_what_is_copied_and_little_else() -> None:
    context = checkout(ROOT)
    for stage in read(DOCKERFILE).stages:
        for said in stage.instructions:
            if said.name == "COPY" and "from" not in said.flags:
                assert all(context.files(source) for source in said.words()[:-1])
    for name in (".git/HEAD", ".venv/pyvenv.cfg", "tests", "e2e", "scripts/run_tests.py"):
        with pytest.raises(ImageError):
            context.files(name)
    assert not [name for name in context.files("operator") if "__pycache__" in name or name.endswith(".pyc")]


def test_the_pins_of_the_build_are_those_of_development() -> None:
    assert pins("build.txt")
    assert pins("build.txt").items() <= pins("dev.txt").items()
    assert {"hatchling", "editables"} <= pins("build.txt").keys()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("FROM scratch\nADD a b", "ADD"),
        ("RUN true", "before the first FROM"),
        ("FROM a b c d", "expected FROM image"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ImageError, match=complaint):
        parse(text)


def test_shell_form_and_unknown_variables_are_refused() -> None:
    said = parse("FROM scratch\nENTRYPOINT partita").stages[0].instructions[0]
    with pytest.raises(ImageError, match="exec form"):
        said.vector()
    with pytest.raises(ImageError, match="MISSING"):
        expand("${MISSING}", {})
    assert expand("$A ${B:-b} ${C}", {"A": "1", "C": ""}) == "1 b "


def test_continued_lines_and_comments_between_them() -> None:
    stage = parse("ARG X=y\nFROM image:${X} AS s\nRUN a \\\n# why\n && b\nENV A=1 \\\n    B='2 3'").stages[0]
    assert (stage.base, stage.name) == ("image:y", "s")
    assert stage.instructions[0].value == "a && b"
    assert stage.instructions[1].pairs() == {"A": "1", "B": "2 3"}


def test_a_layer_does_not_depend_on_order_time_or_owner_names(tmp_path: Path) -> None:
    for name, order in (("one", "ab"), ("two", "ba")):
        for file in order:
            path = tmp_path / name / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(file)
        pack(tmp_path / name, tmp_path / f"{name}.tar")
    assert file_digest(tmp_path / "one.tar") == file_digest(tmp_path / "two.tar")
    (tmp_path / "two" / "a").write_text("other")
    pack(tmp_path / "two", tmp_path / "two.tar")
    assert file_digest(tmp_path / "one.tar") != file_digest(tmp_path / "two.tar")


def test_a_context_follows_its_ignore_file(tmp_path: Path) -> None:
    for name in ("kept/a.py", "kept/__pycache__/a.pyc", "other/b", "kept/c.egg-info/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    context = Context(tmp_path, ("*", "!kept", "**/__pycache__", "**/*.egg-info"))
    assert set(context.files("kept")) == {"a.py"}
    before = context.digest("kept")
    (tmp_path / "kept/a.py").chmod(0o600)
    assert context.digest("kept") == before
    (tmp_path / "kept/a.py").chmod(0o700)
    assert context.digest("kept") != before


def test_an_interrupted_entry_of_the_cache_is_not_there(tmp_path: Path) -> None:
    store = Cache(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ImageError("interrupted")

    with pytest.raises(ImageError):
        store.ensure("steps", "k", fail)
    assert not store.place("steps", "k").exists()
    made_times: list[Path] = []
    assert store.ensure("steps", "k", made_times.append) == store.ensure("steps", "k", made_times.append)
    assert len(made_times) == 1


@pytest.mark.timeout(BUILD_SECONDS)
def test_the_archive_is_what_container_runtimes_read(image: Image, tmp_path: Path) -> None:
    with tarfile.open(image.tar) as tar:
        tar.extractall(tmp_path, filter="data")
    (manifest,) = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    config = tmp_path / manifest["Config"]
    assert manifest["RepoTags"] == ["partita.local/partita:test"]
    assert config.name == f"{file_digest(config)}.json"
    said = json.loads(config.read_text("utf-8"))
    digests = [f"sha256:{file_digest(tmp_path / layer)}" for layer in manifest["Layers"]]
    assert said["rootfs"]["diff_ids"] == digests
    assert said["config"]["User"] == "65532:65532"
    assert said["config"]["Entrypoint"] == ["partita"]
    assert "HOME=/tmp" in said["config"]["Env"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert said["config"]["Labels"]["org.opencontainers.image.version"] == project["version"]
    assert said["config"]["Labels"]["io.partita.sbom.path"] == f"/{SBOM}"


@pytest.mark.timeout(BUILD_SECONDS)
def test_nothing_in_it_helps_who_broke_in(image: Image) -> None:
    found = members(image)
    files = [entry.name for entry in found if not entry.isdir()]
    assert [name for name in files if NOT_WANTED.fullmatch(name)] == []
    assert [entry.name for entry in found if entry.mode & (stat.S_ISUID | stat.S_ISGID)] == []
    assert [entry.name for entry in found if entry.mode & stat.S_IWOTH and not entry.issym()] == ["tmp"]
    assert {(entry.uid, entry.gid) for entry in found} == {(0, 0)}


@pytest.mark.timeout(BUILD_SECONDS)
def test_it_is_small(image: Image) -> None:
    base, dependencies, product = (layer.size / 1e6 for layer in image.layers)
    assert (base < 60, dependencies < 170, product < 12) == (True, True, True), (base, dependencies, product)


@pytest.mark.timeout(BUILD_SECONDS)
def test_the_bill_of_materials_lists_what_is_in_it(image: Image) -> None:
    document = json.loads(content(image, SBOM))
    purls = {part["purl"] for part in document["components"]}
    wanted = {f"pkg:pypi/{name}@{version}" for name, version in pins("runtime.txt").items()}
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert wanted <= purls
    assert any(purl.startswith("pkg:pypi/partita@") for purl in purls)
    packages = {entry.name.rsplit("/", 1)[-1] for entry in members(image) if "/status.d/" in entry.name}
    assert {"libc6", "libssl3", "ca-certificates"} <= packages
    assert {purl.split("/")[2].split("@")[0] for purl in purls if purl.startswith("pkg:deb/")} == packages


@pytest.mark.timeout(BUILD_SECONDS)
def test_every_migration_and_every_kind_is_in_it(image: Image) -> None:
    names = {entry.name.rsplit("/partita/", 1)[-1] for entry in members(image)}
    assert {f"_migrations/{path.name}" for path in (ROOT / "migrations").glob("V*.sql")} <= names
    assert {f"_crds/{path.name}" for path in (ROOT / "crds").glob("*.yaml")} <= names


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A checkout of its own: what the build context holds, at one revision."""
    names = (
        "LICENSE",
        "README.md",
        "pyproject.toml",
        ".dockerignore",
        "crds",
        "migrations",
        "operator",
        "requirements",
    )
    folder = tmp_path / "checkout"
    for name in (*names, "scripts/image"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    return folder


@pytest.mark.timeout(BUILD_SECONDS)
@pytest.mark.usefixtures("image")
def test_two_builds_agree_to_the_byte(copied: Path, tmp_path: Path) -> None:
    shared, own = default(), Cache(tmp_path / "cache")
    own.folder.mkdir()
    for kind in ("bases", "wheels"):
        (own.folder / kind).symlink_to(shared.folder / kind)
    first = build("partita", tmp_path / "first", checkout_of=copied)
    second = build("partita", tmp_path / "second", store=own, checkout_of=copied)
    assert [layer.digest for layer in first.layers] == [layer.digest for layer in second.layers]
    assert first.tar.read_bytes() == second.tar.read_bytes()


@pytest.mark.timeout(BUILD_SECONDS)
@pytest.mark.usefixtures("image")
def test_a_change_of_the_source_makes_the_last_layer_anew_and_nothing_else(copied: Path) -> None:
    said: list[str] = []
    build("partita", copied.parent / "out", checkout_of=copied)
    before = build("partita", copied.parent / "out", say=said.append, checkout_of=copied)
    assert [line for line in said if line.startswith("line ")] == []
    source = copied / "operator/partita/__init__.py"
    source.write_text(source.read_text("utf-8") + "\nCHANGED = 1\n")
    after = build("partita", copied.parent / "out", say=said.append, checkout_of=copied)
    assert before.layers[:-1] == after.layers[:-1]
    assert before.layers[-1].digest != after.layers[-1].digest
    assert before.identity != after.identity
    assert len([line for line in said if line.startswith("line ")]) == 3, said


def test_without_root_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ImageError, match=r"needs root.*docker build"):
        build("pause", tmp_path)


@pytest.mark.usefixtures("image")
def test_the_command_prints_the_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from e2e.images.__main__ import main  # noqa: PLC0415  # a module of this name is otherwise run, not imported

    assert main(["build", "pause", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "pause.tar")]
