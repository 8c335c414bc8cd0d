"""A node with its control plane, in namespaces of their own.

Invariant: whatever is started for a node is a descendant of its holder or has the node's folder in its command line,
so that `stop` leaves no process, mount, interface or control group behind, whoever calls it and whatever came before.
"""

import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster import binaries, flags, processes
from e2e.cluster.bundles import FOR_PODS, HELM, HELM_3, TO_RUN_PODS
from e2e.cluster.contract import PodCluster
from e2e.cluster.controlplane import APISERVER, CONTROLLERS, ETCD, ControlPlane
from e2e.cluster.errors import ClusterError
from e2e.cluster.node import cgroups, images, leftovers, objects, requirements
from e2e.cluster.node import flags as node_flags
from e2e.cluster.node.addresses import NODE_IP, NODE_NAME, PORTS
from e2e.cluster.node.configs import CONTAINERD_SOCKET, Configs
from e2e.cluster.node.holder import NAME as HOLDER
from e2e.cluster.node.holder import Holder, child_of
from e2e.cluster.node.identities import Identities
from e2e.cluster.pki import openssl_problem
from e2e.cluster.ports import LOOPBACK, free_ports
from e2e.cluster.processes import Running
from e2e.cluster.progress import Say, Stopwatch, quietly
from e2e.cluster.state import Record
from e2e.cluster.waiting import wait_until

CONTAINERD, SCHEDULER, KUBELET, PROXY, NAMES = "containerd", "kube-scheduler", "kubelet", "kube-proxy", "coredns"
FORWARD = "forward-"
FORWARD_PROGRAM = Path(__file__).with_name("forward.py")
NODE_SECONDS = 90.0
SERVICE_SECONDS = 60.0
IMPORT_SECONDS = 300.0


class Node(ControlPlane, PodCluster):
    """The node whose files are in `home`; an instance made for one that runs controls that one."""

    provider = "node"

    def __init__(self, home: Path, name: str, say: Say = quietly) -> None:
        super().__init__(home, name, say)
        self._configs = Configs(self.home / "config")
        self._identities = Identities(self.home, self._authority)

    @staticmethod
    def problem() -> str | None:
        """Return why no node can run here, or None when one can."""
        unbuilt = [bundle for bundle in TO_RUN_PODS if binaries.cached(bundle) is None]
        compilers = (problem for bundle in unbuilt if (problem := binaries.go_problem(bundle)) is not None)
        return requirements.problem() or next(compilers, None) or openssl_problem()

    @property
    def helm(self) -> Path:
        return binaries.ensure(self._say, HELM)["helm"]

    @property
    def helm_3(self) -> Path:
        return binaries.ensure(self._say, HELM_3)["helm"]

    @property
    def holder(self) -> Holder:
        """The process that holds the namespaces; raises ClusterError when the node does not run."""
        program = self.programs().get(HOLDER)
        if program is None:
            raise ClusterError(f"{self.home}: no node runs here; try: python -m e2e.cluster node up")
        return Holder(program)

    def prepare(self) -> None:
        """Build the programs and both Helms, unless they are in the cache."""
        for bundle in FOR_PODS:
            binaries.ensure(self._say, bundle)

    def start(self) -> None:
        """Start a fresh node; returns when it is Ready, names resolve and the default service account exists."""
        if self.ready():
            return
        if (problem := self.problem()) is not None:
            raise ClusterError(f"no node can run here: {problem}")
        for bundle in TO_RUN_PODS:
            binaries.ensure(self._say, bundle)
        self._remove_abandoned()
        try:
            self._start({**PORTS, APISERVER: free_ports(1)[0]})
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything of the node, at once, and remove what it kept but the logs."""
        programs = self.programs()
        for name, program in programs.items():
            if name == HOLDER:
                Holder(program).kill()
            elif name.startswith(FORWARD):
                program.kill()
        for program in programs.values():
            program.kill()
        cgroups.remove(leftovers.identity(self.home))
        for folder in ("cni", "config", "containerd", "helm", "kubelet", "log", "run", "settings", "volumes"):
            shutil.rmtree(self.home / folder, ignore_errors=True)
        for name in ("pause.tar", "holder.ready"):
            (self.home / name).unlink(missing_ok=True)
        self._identities.remove()
        super().stop()
        leftovers.forget(self.home)

    def start_apiserver(self) -> None:
        self._launch(APISERVER, node_flags.apiserver(self._authority))
        self._await(APISERVER, "/readyz answers 200", self._probe().ready)

    def load_image(self, archive: Path) -> None:
        watch = Stopwatch()
        self._ctr("images", "import", "--all-platforms", str(archive.resolve()))
        self._say(f"image {archive.name} loaded in {watch.seconds:.1f} s")

    @contextlib.contextmanager
    def reach(self, namespace: str, service: str, port: int) -> Iterator[int]:
        address = self.kubectl_json("get", "service", service, "--namespace", namespace)["spec"]["clusterIP"]
        connect = (str(requirements.BUSYBOX), "nc", "-w", "2", address, str(port))
        what = f"service {namespace}/{service}: takes connections on port {port}"
        wait_until(lambda: self._succeeds(*connect), what, seconds=SERVICE_SECONDS, every=0.2)
        local = free_ports(1)[0]
        program = self._forward(local, address, port)
        try:
            yield local
        finally:
            program.kill()
            record = self._known()
            rest = {name: pid for name, pid in record.pids.items() if name != program.name}
            dataclasses.replace(record, pids=rest).write(self.home)

    def command_inside(self, *command: str) -> list[str]:
        """Return the command that runs another in the node's network, with the files of the machine."""
        return self.holder.enter_network(*command)

    def _start(self, ports: dict[str, int]) -> None:
        watch = Stopwatch()
        self._begin(ports)
        self._start_holder()
        self._forward(ports[APISERVER], NODE_IP, PORTS[APISERVER])
        self._launch(ETCD, node_flags.etcd(self.home))
        self._launch(CONTAINERD, {"config": str(self._configs.containerd)})
        self.start_apiserver()
        ready = watch.seconds
        self._launch(
            CONTROLLERS,
            node_flags.controller_manager(self._authority, self._identities.kubeconfig("controller-manager")),
        )
        self._launch(SCHEDULER, node_flags.scheduler(self._identities.kubeconfig("scheduler")))
        self._start_node()
        self._start_names()
        self._say(f"Kubernetes API ready after {ready:.1f} s, node {self.name} after {watch.seconds:.1f} s")

    def _begin(self, ports: dict[str, int]) -> None:
        """Write everything that the programs read."""
        self.stop()
        shutil.rmtree(self.home / "logs", ignore_errors=True)
        self.home.mkdir(parents=True, exist_ok=True)
        Record(self.provider, self.name, ports=ports).write(self.home)
        self._identities.create(self.name)
        self._write_kubeconfig(self.kubeconfig, "admin")
        cgroup = cgroups.create(leftovers.identity(self.home))
        self._configs.write(self._authority, cgroup=cgroup, names_kubeconfig=self._identities.kubeconfig("names"))

    def _start_holder(self) -> None:
        holder = Holder.start(self.home)
        self._record_pid(holder.program)
        leftovers.note(self.home, holder.program.pid)
        holder.wait()

    def _start_node(self) -> None:
        self._await(CONTAINERD, "answers", lambda: self._succeeds("ctr", "--address", CONTAINERD_SOCKET, "version"))
        images.write_pause(self.home / "pause.tar")
        self.load_image(self.home / "pause.tar")
        self._launch(KUBELET, node_flags.kubelet(self._configs.kubelet, self._identities.kubeconfig("kubelet")))
        self._launch(PROXY, node_flags.proxy(self._identities.kubeconfig("proxy")))
        objects.write(self.home / "config" / "objects.json", self.home / "volumes")
        self.run_kubectl("apply", "--server-side", "-f", str(self.home / "config" / "objects.json"))

    def _start_names(self) -> None:
        self._launch(NAMES, {}, "-conf", str(self._configs.names))
        for wanted in (f"node/{NODE_NAME}", "serviceaccount/default"):
            self.run_kubectl("wait", "--for=create", wanted, f"--timeout={NODE_SECONDS:g}s", seconds=NODE_SECONDS + 10)
        wait = ("wait", "--for=condition=Ready", f"node/{NODE_NAME}", f"--timeout={NODE_SECONDS:g}s")
        self.run_kubectl(*wait, seconds=NODE_SECONDS + 10)
        url = f"http://{NODE_IP}:8181/ready"
        self._await(NAMES, "ready", lambda: self._succeeds(str(requirements.BUSYBOX), "wget", "-q", "-O", "-", url))

    def _launch(self, name: str, options: flags.Options, *arguments: str) -> None:
        command = processes.command_line(self._program(name), options, arguments)
        self._record_pid(processes.start_command(self.home, name, self.holder.enter(*command)))

    def _program(self, name: str) -> Path:
        """Return the path of a program that runs in the node."""
        for bundle in TO_RUN_PODS:
            if name in bundle.packages:
                return binaries.ensure(self._say, bundle)[name]
        found = requirements.find(name)
        if found is None:
            raise ClusterError(f"{name}: not installed")
        return found

    def _kill(self, name: str) -> None:
        """End a program at once: what was started is an `nsenter` that waits for it."""
        program = self.programs().get(name)
        if program is None:
            return
        if program.alive() and (child := child_of(program.pid)) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            wait_until(lambda: not program.alive(), f"{name}: ended", seconds=processes.KILL_SECONDS)
        program.kill()

    def _forward(self, local: int, address: str, port: int) -> Running:
        """Let a port of loopback lead to an address inside."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((LOOPBACK, local))
            listener.listen(512)
            target = (str(listener.fileno()), address, str(port), str(self.home))
            command = self.holder.enter_network(sys.executable, "-I", str(FORWARD_PROGRAM), *target)
            program = processes.start_command(self.home, f"{FORWARD}{local}", command, pass_fds=(listener.fileno(),))
        self._record_pid(program)
        return program

    def _record_pid(self, program: Running) -> None:
        record = self._known()
        dataclasses.replace(record, pids={**record.pids, program.name: program.pid}).write(self.home)

    def _remove_abandoned(self) -> None:
        for home, holder in leftovers.abandoned():
            self._say(f"removing what a killed process left of the node in {home}")
            Holder(Running(HOLDER, holder, home)).kill()
            Node(home, self.name, self._say).stop()

    def _succeeds(self, *command: str) -> bool:
        try:
            self.holder.run(*command, seconds=5)
        except ClusterError:
            return False
        return True

    def _ctr(self, *arguments: str) -> None:
        command = ("ctr", "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", *arguments)
        self.holder.run(*command, seconds=IMPORT_SECONDS)
