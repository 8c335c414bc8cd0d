"""What the images do as a pod would run them: first process, unprivileged user, a root that cannot be written to."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg
import pytest

from e2e.cluster.contract import Cluster
from e2e.cluster.fixtures import cluster
from e2e.cluster.ports import LOOPBACK, free_ports
from e2e.images import Image, ImageError, build, problem
from e2e.images.build import ROOT
from e2e.images.running import Running, running

__all__ = ["cluster"]

BUILD_SECONDS = 900
SECONDS = 60.0
PASSWORD = 'it\'s a "secret"'
READY = "database system is ready to accept connections"
pytestmark = pytest.mark.timeout(BUILD_SECONDS)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the images' archives go; skips where none can be built."""
    if (missing := problem()) is not None:
        pytest.skip(missing)
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def partita(archives: Path) -> Image:
    """The product's image."""
    return build("partita", archives)


@pytest.fixture(scope="module")
def postgres(archives: Path) -> Image:
    """The image of PostgreSQL."""
    return build("postgres", archives)


@dataclass(frozen=True, slots=True)
class Volume:
    """What a pod of PostgreSQL mounts, and the port of its server."""

    data: Path
    sockets: Path
    port: int

    @property
    def mounts(self) -> dict[str, Path]:
        """Folders of the image that can be written to."""
        return {"/var/lib/postgresql": self.data, "/run/postgresql": self.sockets}

    @property
    def command(self) -> list[str]:
        """What the pod's `args` are."""
        return ["postgres", "-c", f"port={self.port}", "-c", f"listen_addresses={LOOPBACK}", "-c", "fsync=off"]

    @contextlib.asynccontextmanager
    async def connect(self, password: str = PASSWORD) -> AsyncIterator[asyncpg.Connection]:
        """Connect as the application would."""
        connection = await asyncpg.connect(
            host=LOOPBACK, port=self.port, user="app", password=password, database="partita", timeout=SECONDS
        )
        try:
            yield connection
        finally:
            await connection.close()


def new_volume(folder: Path) -> Volume:
    """Fresh folders that the server's user owns."""
    for name in ("data", "sockets"):
        (folder / name).mkdir(parents=True)
        os.chown(folder / name, 999, 999)
    (port,) = free_ports(1)
    return Volume(folder / "data", folder / "sockets", port)


ACCESS = {"POSTGRES_USER": "app", "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": "partita"}


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    """An empty volume of one test."""
    return new_volume(tmp_path)


@pytest.fixture(scope="module")
def database(postgres: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Variables that lead to a running server of the PostgreSQL image, with the schema made by the product's image."""
    own = new_volume(tmp_path_factory.mktemp("database"))
    access = {"POSTGRES_PASSWORD": "plain", "POSTGRES_DB": "partita"}
    with running(postgres, own.command, variables=access, writable=own.mounts, user="999:999") as server:
        server.wait_for(READY, SECONDS, times=2)
        yield {"PARTITA_DATABASE_URL": f"postgresql://postgres:plain@{LOOPBACK}:{own.port}/partita"}


@pytest.fixture(scope="module")
def migrated(partita: Image, database: dict[str, str]) -> dict[str, str]:
    """The same after `partita migrate --wait`."""
    output = finished(partita, ["migrate", "--wait"], database)
    assert all(path.stem.split("__")[1] in output for path in (ROOT / "migrations").glob("V*.sql"))
    return database


def finished(image: Image, arguments: list[str], variables: dict[str, str]) -> str:
    """Output of a command that must succeed."""
    with running(image, arguments, variables=variables) as program:
        assert program.wait(SECONDS) == 0, program.output
        return program.output


def stopped(program: Running, number: signal.Signals = signal.SIGTERM) -> int:
    """Exit code after a signal."""
    program.signal(number)
    return program.wait(SECONDS)


def test_the_program_runs_without_anything_else(partita: Image) -> None:
    assert finished(partita, ["--version"], {}).startswith("partita ")


def test_every_module_loads_and_certificates_are_found(partita: Image, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "look.py").write_text(
        "import importlib, os, pkgutil, ssl, zoneinfo, partita\n"
        "for module in pkgutil.walk_packages(partita.__path__, 'partita.'):\n"
        "    importlib.import_module(module.name)\n"
        "assert ssl.create_default_context().cert_store_stats()['x509_ca'] > 50\n"
        "zoneinfo.ZoneInfo('Europe/Berlin')\n"
        "assert (os.getuid(), os.getgid(), os.getgroups()) == (65532, 65532, [])\n"
        "try:\n"
        "    open('/opt/partita/x', 'w')\n"
        "except OSError as error:\n"
        "    print(error.strerror)\n"
        "open('/tmp/x', 'w').close()\n"
    )
    state = replace(partita.state, entrypoint=("python",))
    with running(replace(partita, state=state), ["/run/look.py"], writable={"/run": tmp_path}) as program:
        assert program.wait(SECONDS) == 0, program.output
        assert program.output == "Read-only file system\n"


def test_migrations_are_packaged_and_partitions_can_be_made(partita: Image, migrated: dict[str, str]) -> None:
    assert "partitions" in finished(partita, ["partitions", "ensure"], migrated)


def test_a_worker_ends_in_good_order(partita: Image, migrated: dict[str, str], tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    variables = migrated | {"PYTHONPATH": "/run"}
    arguments = ["worker", "examples.tasks:app"]
    with running(partita, arguments, variables=variables, writable={"/run": tmp_path}) as worker:
        worker.wait_for(" serves ", SECONDS)
        assert stopped(worker) == 0, worker.output
        assert " stops" in worker.output


def test_an_operator_ends_in_good_order(
    partita: Image, migrated: dict[str, str], cluster: Cluster, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    shutil.copyfile(cluster.kubeconfig, tmp_path / "kubeconfig")
    (tmp_path / "kubeconfig").chmod(0o644)
    cluster.run_kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
    variables = migrated | {"KUBECONFIG": "/run/kubeconfig", "PARTITA_OPERATOR_NAMESPACE": "default"}
    (port,) = free_ports(1)
    arguments = ["operator", "--health-port", str(port)]
    with running(partita, arguments, variables=variables, writable={"/run": tmp_path}) as operator:
        operator.wait_for(" leads term ", SECONDS)
        assert stopped(operator) == 0, operator.output
    cluster.run_kubectl("delete", "workflowengines.partita.dev", "--all", "--wait=false")


async def reached(volume: Volume, password: str = PASSWORD) -> None:
    """Connect and leave."""
    async with volume.connect(password):
        pass


async def test_a_first_start_makes_the_database_and_a_second_one_keeps_it(postgres: Image, volume: Volume) -> None:
    with running(postgres, volume.command, variables=ACCESS, writable=volume.mounts, user="999:999") as server:
        await asyncio.to_thread(server.wait_for, READY, SECONDS, times=2)
        async with volume.connect() as connection:
            assert await connection.fetchval("SHOW server_encoding") == "UTF8"
            assert (await connection.fetchval("SHOW server_version")).startswith(f"{postgres.tag.rsplit(':', 1)[1]}.")
            await connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await reached(volume, "wrong")
        assert stopped(server, signal.SIGINT) == 0
    with running(postgres, volume.command, variables=ACCESS, writable=volume.mounts, user="999:999") as server:
        await asyncio.to_thread(server.wait_for, READY, SECONDS)
        async with volume.connect() as connection:
            assert await connection.fetchval("SELECT one FROM kept") == 1
        assert stopped(server, signal.SIGTERM) == 0
        assert "initialised" not in server.output


async def test_a_first_start_that_was_cut_off_is_done_again(postgres: Image, volume: Volume) -> None:
    with running(postgres, volume.command, variables=ACCESS, writable=volume.mounts, user="999:999") as server:
        await asyncio.to_thread(server.wait_for, "waiting for server to start", SECONDS)
    with running(postgres, volume.command, variables=ACCESS, writable=volume.mounts, user="999:999") as server:
        await asyncio.to_thread(server.wait_for, READY, SECONDS, times=2)
        await reached(volume)


async def test_root_hands_over_to_the_servers_own_account(postgres: Image, volume: Volume) -> None:
    os.chown(volume.data, 0, 0)
    with running(postgres, volume.command, variables=ACCESS, writable=volume.mounts) as server:
        await asyncio.to_thread(server.wait_for, READY, SECONDS, times=2)
        assert (volume.data / "18" / "docker").stat().st_uid == 999
        await reached(volume)
        assert stopped(server) == 0


def test_without_a_password_it_says_so(postgres: Image, volume: Volume) -> None:
    with running(postgres, volume.command, writable=volume.mounts, user="999:999") as server:
        assert server.wait(SECONDS) == 1
        assert "POSTGRES_PASSWORD" in server.output
    assert not list((volume.data / "18").glob("docker/*"))


def test_the_pause_image_only_waits(archives: Path) -> None:
    image = build("pause", archives)
    with running(image, []) as program:
        with pytest.raises(ImageError, match="still runs"):
            program.wait(1)
        assert program.output == ""
