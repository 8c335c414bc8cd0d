"""A Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, built from source.

The API is the real one, with RBAC, admission, CEL, garbage collection and the controllers for namespaces and Jobs;
there is no node, so pods stay Pending. Nothing survives `stop`, therefore etcd need not wait for the disk.
"""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

from e2e.cluster import binaries, flags, kubeconfig, processes
from e2e.cluster.contract import RestartableCluster
from e2e.cluster.errors import ClusterError
from e2e.cluster.pki import Authority, openssl_problem
from e2e.cluster.ports import LOOPBACK, free_ports, is_free
from e2e.cluster.probe import Probe
from e2e.cluster.processes import Running
from e2e.cluster.progress import Say, Stopwatch, quietly
from e2e.cluster.state import Record, kubeconfig_path, record_path
from e2e.cluster.waiting import wait_until

ETCD, APISERVER, CONTROLLERS = "etcd", "kube-apiserver", "kube-controller-manager"
READY_SECONDS = 90.0
START_TRIES = 3
DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ControlPlane(RestartableCluster):
    """The control plane whose files are in `home`; an instance made for one that runs controls that one."""

    provider = "go"

    def __init__(self, home: Path, name: str, say: Say = quietly) -> None:
        self.home = home.resolve()
        self.name = name
        self._say = say
        self._authority = Authority(self.home / "pki")

    @staticmethod
    def problem() -> str | None:
        """Return why this provider cannot be used here, or None when it can."""
        return (binaries.go_problem() if binaries.cached() is None else None) or openssl_problem()

    @property
    def kubeconfig(self) -> Path:
        return kubeconfig_path(self.home)

    @property
    def kubectl(self) -> Path:
        return self._programs()["kubectl"]

    def prepare(self) -> None:
        """Build the programs, unless they are in the cache."""
        self._programs()

    def start(self) -> None:
        """Start a fresh control plane; returns when the API is ready and the default service account exists."""
        if self.ready():
            return
        self._programs()
        for left in reversed(range(START_TRIES)):
            ports = dict(zip((ETCD, "etcd-peer", APISERVER), free_ports(3), strict=True))
            try:
                self._start(ports)
            except ClusterError:
                self.stop()
                if not left or all(is_free(port) for port in ports.values()):
                    raise
                self._say("another program took a port meanwhile: trying others")
            else:
                return

    def stop(self) -> None:
        """End every program, clients before servers, and remove what they kept but the logs."""
        for name in (CONTROLLERS, APISERVER, ETCD):
            self._kill(name)
        for folder in ("etcd", "pki"):
            shutil.rmtree(self.home / folder, ignore_errors=True)
        for path in (self.kubeconfig, self._controllers_kubeconfig, record_path(self.home)):
            path.unlink(missing_ok=True)

    def ready(self) -> bool:
        return self._record() is not None and self._probe().ready()

    def stop_apiserver(self) -> None:
        self._kill(APISERVER)

    def start_apiserver(self) -> None:
        self._launch(APISERVER, flags.apiserver(self._authority, self._known().ports))
        self._await(APISERVER, "/readyz answers 200", self._probe().ready)

    def programs(self) -> dict[str, Running]:
        """Return the programs that were started, by name, whether they run still or not."""
        record = self._record()
        pids = record.pids if record is not None else {}
        return {name: Running(name, pid, self.home) for name, pid in pids.items()}

    def _start(self, ports: dict[str, int]) -> None:
        watch = Stopwatch()
        self.stop()
        shutil.rmtree(self.home / "logs", ignore_errors=True)
        self.home.mkdir(parents=True, exist_ok=True)
        Record(self.provider, self.name, ports=ports).write(self.home)
        self._authority.create(service_ip=flags.SERVICE_IP)
        self._write_kubeconfig(self.kubeconfig, "admin")
        self._write_kubeconfig(self._controllers_kubeconfig, "controller-manager")
        self._launch(ETCD, flags.etcd(self.home, ports))
        self.start_apiserver()
        ready = watch.seconds
        self._launch(CONTROLLERS, flags.controller_manager(self._authority, self._controllers_kubeconfig))
        self._await(CONTROLLERS, "the default service account exists", lambda: self._probe().found(DEFAULT_ACCOUNT))
        self._say(f"Kubernetes API ready after {ready:.1f} s, its controllers after {watch.seconds:.1f} s")

    def _launch(self, name: str, options: flags.Options) -> None:
        program = processes.start(self.home, name, self._programs()[name], options)
        record = self._known()
        dataclasses.replace(record, pids={**record.pids, name: program.pid}).write(self.home)

    def _await(self, name: str, what: str, ready: Callable[[], bool]) -> None:
        """Wait for `ready`, but no longer than the programs live."""
        running = self.programs().values()

        def check() -> bool:
            for program in running:
                program.check()
            return ready()

        log = processes.log_path(self.home, name)
        wait_until(check, f"{name}: {what}", seconds=READY_SECONDS, log=log)

    def _kill(self, name: str) -> None:
        program = self.programs().get(name)
        if program is not None:
            program.kill()

    def _probe(self) -> Probe:
        return Probe(self._known().ports[APISERVER], self._authority.ca.certificate, self._authority.pair("admin"))

    def _write_kubeconfig(self, path: Path, client: str) -> None:
        kubeconfig.write(
            path,
            server=f"https://{LOOPBACK}:{self._known().ports[APISERVER]}",
            ca=self._authority.ca.certificate,
            client=self._authority.pair(client),
            context=self.name,
        )

    @property
    def _controllers_kubeconfig(self) -> Path:
        return self.home / "controller-manager.kubeconfig"

    def _programs(self) -> binaries.Binaries:
        return binaries.ensure(self._say)

    def _record(self) -> Record | None:
        """Read the record anew: another process may have restarted a program."""
        return Record.read(self.home)

    def _known(self) -> Record:
        record = self._record()
        if record is None:
            raise ClusterError(
                f"{self.home}: no cluster runs here; try: python -m e2e.cluster up --state-dir {self.home}"
            )
        return record
