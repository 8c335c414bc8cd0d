"""`make demo` as a person runs it: what it tells, what it leaves running, and what it leaves alone."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from e2e.cluster.choice import PROVIDERS
from e2e.cluster.contract import Cluster
from e2e.cluster.fixtures import cluster
from e2e.cluster.ports import is_free
from e2e.cluster.state import Record
from tests import postgres

__all__ = ["cluster"]

ROOT = Path(__file__).resolve().parents[1]
DEMO_SECONDS = 280
STORY = (
    "── The stage",
    "── Install: the schema, the kinds, the operator and a worker",
    "$ partita migrate",
    "$ kubectl apply -f crds/ --server-side",
    "$ partita operator &",
    "$ partita worker examples.tasks:app &",
    "workflowengine.partita.dev/partita condition met",
    "── A definition and a run",
    "$ kubectl -n partita-demo get workflowruns -w",
    "$ kubectl -n partita-demo apply -f examples/order.yaml",
    "workflowrun.partita.dev/order-1 created",
    "timer coolOff until",
    "event approval",
    "── It waits for an event: send it",
    "workflowrun.partita.dev/order-1 patched",
    "Succeeded",
    "── The result",
    "workflowrun.partita.dev/order-1 condition met",
    '/courier/me"}',
    "RunFinished",
    "── What to try next",
)
"""What a reader must find, in this order."""
OUTPUT = re.compile(r'^\{"carrier":"courier","confirmation":"ch-[0-9a-f]{8}/courier/me"\}$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Demo:
    """Runs the demo with a home of its own, so that a demo that a person keeps is not disturbed."""

    home: Path
    person: Path
    """The home of a person, with a kubeconfig that must stay as it is."""

    def environment(self, **changes: str) -> dict[str, str]:
        """A person's environment: no variable of the project, a kubeconfig of their own, the usual cache."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PARTITA_", "KEEP"))}
        if (kubeconfig := os.environ.get("PARTITA_E2E_KUBECONFIG")) is not None:
            clean["PARTITA_E2E_KUBECONFIG"] = kubeconfig
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        own = {
            "PARTITA_DEMO_HOME": str(self.home),
            "HOME": str(self.person),
            "KUBECONFIG": str(self.person / "kubeconfig"),
            "XDG_CACHE_HOME": cache,
            "DOCKER_CONFIG": os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker"),
        }
        return {**clean, **own, **changes}

    def __call__(self, *words: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            [sys.executable, "-m", "e2e.demo", *words],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEMO_SECONDS,
            check=False,
        )

    def digest(self) -> str:
        """Digest of everything in the person's home."""
        files = sorted(path for path in self.person.rglob("*") if path.is_file())
        return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """A demo that is stopped afterwards; any account may enter its home, since root cannot run PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="partita-demo-test-"))
    folder.chmod(0o755)
    person = tmp_path / "person"
    (person / ".kube").mkdir(parents=True)
    for kubeconfig in (person / "kubeconfig", person / ".kube" / "config"):
        kubeconfig.write_text("apiVersion: v1\nkind: Config\ncurrent-context: production\n")
    made = Demo(folder / "home", person)
    yield made
    made("stop", environment=made.environment())
    shutil.rmtree(folder)


def needs_a_provider() -> None:
    """Skip where no provider of a cluster of one's own works; the reason names them all."""
    problems = [f"{provider.provider}: {why}" for provider in PROVIDERS if (why := provider.problem()) is not None]
    if len(problems) == len(PROVIDERS):
        pytest.skip(f"no Kubernetes: {'; '.join(problems)}")


def assert_told(text: str) -> None:
    """The story is told in its order, with its result."""
    place = 0
    for line in STORY:
        found = text.find(line, place)
        assert found >= 0, f"{line!r} is not told (in its place):\n{text}"
        place = found + len(line)
    assert OUTPUT.search(text), text


def pids(text: str) -> list[int]:
    """Processes that the demo started."""
    return [int(pid) for pid in re.findall(r"^  pid (\d+), log ", text, re.MULTILINE)]


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and is not yet reaped does not."""
    if not Path("/proc/self").exists():
        return bool(subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, check=False).stdout)
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def test_it_tells_the_story_and_leaves_nothing(demo: Demo) -> None:
    needs_a_provider()
    before = demo.digest()
    told = demo(environment=demo.environment())
    assert told.returncode == 0, told.stdout
    assert_told(told.stdout)
    assert "an embedded PostgreSQL" in told.stdout
    started = pids(told.stdout)
    assert len(started) == 2
    assert not [pid for pid in started if alive(pid)]
    assert not demo.home.exists()
    assert demo.digest() == before


def test_it_is_kept_on_a_named_database_until_it_is_stopped(demo: Demo) -> None:
    needs_a_provider()
    before = demo.digest()
    with postgres.cluster() as server, postgres.fresh_database(server, "template0") as url:
        environment = demo.environment(KEEP="1", PARTITA_DATABASE_URL=url)
        told = demo(environment=environment)
        assert told.returncode == 0, told.stdout
        assert_told(told.stdout)
        started = pids(told.stdout)
        assert [pid for pid in started if alive(pid)] == started
        reach = exported(told.stdout)
        assert_it_can_be_reached({**environment, **reach, "KUBECACHEDIR": str(demo.home / "cache")})
        assert schemas(url) == {"partita_demo"}
        endpoint = api_server(Path(reach["KUBECONFIG"]))
        stopped = demo("stop", environment=demo.environment())
        assert (stopped.returncode, stopped.stdout.splitlines()[-1]) == (0, "demo: stopped")
        assert schemas(url) == set()
    assert not [pid for pid in started if alive(pid)]
    assert endpoint is None or is_free(endpoint)
    assert not demo.home.exists()
    assert demo("stop", environment=demo.environment()).stdout == "demo: none is running\n"
    assert demo.digest() == before


def exported(text: str) -> dict[str, str]:
    """The variables that the demo tells a person to set, as a shell understands them."""
    lines = "\n".join(re.findall(r"^    (export .*)$", text, re.MULTILINE))
    shown = subprocess.run(["bash", "-c", f"{lines}\nenv -0"], cwd=ROOT, capture_output=True, text=True, check=True)
    every = dict(pair.split("=", 1) for pair in shown.stdout.split("\0") if pair)
    return {name: every[name] for name in re.findall(r"export (\w+)=", lines)}


def assert_it_can_be_reached(environment: Mapping[str, str]) -> None:
    """A person's next order goes through, by the commands that the demo suggests."""

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    run("sed s/order-1/order-2/ examples/order.yaml | kubectl -n partita-demo apply -f -")
    run("""kubectl partita signal order-2 approval '{"by":"you"}' -n partita-demo""")
    assert "/courier/you" in run("kubectl partita wait order-2 -n partita-demo")
    assert "order-2" in run("partita list")


def api_server(kubeconfig: Path) -> int | None:
    """The port of the API server when it is a program of this machine's; a container's port is freed by its engine."""
    record = Record.read(kubeconfig.parent)
    return record.ports["kube-apiserver"] if record is not None and record.provider == "go" else None


def schemas(url: str) -> set[str]:
    """The schemas of a database but for PostgreSQL's own."""

    async def names() -> set[str]:
        connection = await asyncpg.connect(url)
        try:
            rows = await connection.fetch(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema|public)'"
            )
            return {row["nspname"] for row in rows}
        finally:
            await connection.close()

    return postgres.run(names())


def test_on_a_person_s_cluster_it_leaves_nothing_but_the_kinds(demo: Demo, cluster: Cluster) -> None:
    environment = demo.environment(PARTITA_E2E_KUBECONFIG=str(cluster.kubeconfig))
    told = demo(environment=environment)
    assert told.returncode == 0, told.stdout
    assert_told(told.stdout)
    assert cluster.ready()
    assert "partita-demo" not in cluster.run_kubectl("get", "namespaces", "-o", "name")
    assert "workflowruns.partita.dev" in cluster.run_kubectl("get", "crds", "-o", "name")


def test_without_any_cluster_it_says_what_is_missing_and_runs_without(demo: Demo) -> None:
    environment = demo.environment(PATH="/nonexistent", XDG_CACHE_HOME=str(demo.person / "empty"))
    environment.pop("PARTITA_E2E_KUBECONFIG", None)
    told = demo(environment=environment)
    assert told.returncode == 0, told.stdout
    assert "no Kubernetes to test against" in told.stdout
    assert "PARTITA_E2E_KUBECONFIG is not set" in told.stdout
    assert "the kind program is not installed" in told.stdout
    assert re.search(r"Go 1\.\d+ or newer is not installed", told.stdout)
    assert "$ partita dev run examples/order.yaml" in told.stdout
    assert re.search(r"order\S*\s+.*Succeeded", told.stdout)
    assert '"carrier":"courier"' in told.stdout
    assert not demo.home.exists()


def test_words_that_it_does_not_know(demo: Demo) -> None:
    told = demo("start", environment=demo.environment())
    assert (told.returncode, told.stdout) == (2, "demo: start: expected nothing, or stop\n")
