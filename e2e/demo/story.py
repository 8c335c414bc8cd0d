"""The story: install, apply a workflow, watch it, send the event it waits for, read the result."""

import os
import shlex

from e2e.cluster.waiting import wait_until
from e2e.demo.shell import Shell, explain, heading, say
from e2e.demo.stage import HOME_VARIABLE, NAMESPACE, Stage

RUN = "order-1"
EVENT = '[{"op":"add","path":"/spec/signals/-","value":{"id":"a1","name":"approval","payload":{"by":"me"}}}]'
CLUSTERS = {
    "explicit": "the cluster of PARTITA_E2E_KUBECONFIG; the demo works in one namespace, and its CRDs stay",
    "kind": "a kind cluster made for this demo",
    "go": "a real control plane (etcd, API server, controllers) on this machine, made for this demo",
}


def tell(stage: Stage) -> None:
    """Play it from the first command to the result."""
    shell = stage.shell()
    _set_the_scene(stage)
    _install(stage, shell)
    _run(shell)
    _result(shell)


def _set_the_scene(stage: Stage) -> None:
    heading("The stage")
    explain(f"Kubernetes: {CLUSTERS[stage.cluster.provider]}.")
    explain(f"PostgreSQL: {stage.database.title}.")
    explain("Your own kubeconfig is not touched: KUBECONFIG and PARTITA_DATABASE_URL are set for these commands alone.")


def _install(stage: Stage, shell: Shell) -> None:
    heading("Install: the schema, the kinds, the operator and a worker")
    explain("The tables, with month partitions for now and the next months:")
    shell.run("partita migrate")
    explain("The kinds WorkflowDefinition, WorkflowRun and WorkflowEngine:")
    shell.run("kubectl apply -f crds/ --server-side")
    shell.run("kubectl wait --for=condition=Established -f crds/")
    shell.run(f"kubectl create namespace {NAMESPACE}")
    explain("The operator turns objects into runs in PostgreSQL and shows their status; the worker executes tasks,")
    explain("here the three functions of examples/tasks.py. Both are processes that you start, wherever they can reach")
    explain(
        "the database (and the operator the API server); a Helm chart that deploys them comes with a later version:"
    )
    stage.processes.append(shell.background("partita operator", stage.folder / "operator.log"))
    stage.processes.append(shell.background("partita worker examples.tasks:app", stage.folder / "worker.log"))

    def created() -> bool:
        for process in stage.processes:
            process.check()
        return bool(shell.output(f"kubectl -n {NAMESPACE} get workflowengine partita -o name"))

    wait_until(created, "the operator's WorkflowEngine", seconds=60)
    shell.run(f"kubectl -n {NAMESPACE} wait workflowengine/partita --for=condition=Ready --timeout=60s")
    shell.run(f"kubectl -n {NAMESPACE} get workflowengines")


def _run(shell: Shell) -> None:
    heading("A definition and a run: task, switch, two branches, a join, a wait, an event, a last task")
    explain(
        "examples/order.yaml holds both. The watch runs on while the order is charged, packed and cools off for 2 s;"
    )
    explain("its lines stand two columns to the right. WAITING says what the run waits for:")
    watch = shell.streaming(f"kubectl -n {NAMESPACE} get workflowruns -w")
    try:
        shell.run(f"kubectl -n {NAMESPACE} apply -f examples/order.yaml")
        watch.wait_for(RUN, "approval", seconds=60)
        heading("It waits for an event: send it")
        explain("An event is an entry of spec.signals. `partita signal` and `kubectl partita signal` send one as well.")
        shell.run(f"kubectl -n {NAMESPACE} patch workflowrun {RUN} --type=json -p {shlex.quote(EVENT)}")
        watch.wait_for(RUN, "Succeeded", seconds=60)
    finally:
        watch.stop()


def _result(shell: Shell) -> None:
    heading("The result")
    explain("In Kubernetes: the object's status, a summary that GitOps tools and kubectl wait understand.")
    shell.run(f"kubectl -n {NAMESPACE} wait workflowrun/{RUN} --for=condition=Completed --timeout=30s")
    shell.run(f"kubectl -n {NAMESPACE} get workflowrun {RUN} -o wide")
    shell.run(f"kubectl -n {NAMESPACE} get workflowrun {RUN} -o jsonpath={{.status.output}}")
    say()
    explain("In PostgreSQL: everything, also when the object is long gone.")
    shell.run(f"partita get {RUN} -n {NAMESPACE}")
    shell.run(f"partita history {RUN} -n {NAMESPACE}")


def next_steps(stage: Stage, *, kept: bool) -> None:
    """What to try next, and how to reach and stop what still runs."""
    heading("What to try next")
    if not kept:
        _suggest("make demo KEEP=1", "leave all of it running, to play with")
        _suggest('partita dev run examples/order.yaml --event approval=\'{"by":"me"}\'', "the same without a cluster")
        _suggest("partita lint examples/order.yaml", "every problem of a manifest, without a cluster")
        _suggest("less docs/manifests.md", "what manifests can say")
        say("  partita is in .venv/bin; all that this demo started is taken down now.")
        return
    say("  Everything still runs. To reach it, in a shell of yours:")
    for name, value in stage.environment().items():
        say(f"    export {name}={shlex.quote(value)}")
    say(f'    export PATH="$PWD/.venv/bin:{stage.cluster.kubectl.parent}:$PATH"')
    say("  Then, for instance:")
    _suggest(f"sed s/{RUN}/order-2/ examples/order.yaml | kubectl -n {NAMESPACE} apply -f -", "another order")
    _suggest(f"kubectl partita watch order-2 -n {NAMESPACE}", "draw it live, from another terminal")
    _suggest(f'kubectl partita signal order-2 approval \'{{"by":"me"}}\' -n {NAMESPACE}', "the event that it waits for")
    _suggest("kubectl explain workflowrun.spec", "what a run can say")
    _suggest("partita list", "all runs, from PostgreSQL")
    say("  To stop it:")
    say(f"    {stop_command()}")


def stop_command() -> str:
    """What takes down this demo, in whatever folder it lives."""
    named = os.environ.get(HOME_VARIABLE)
    place = f"{HOME_VARIABLE}={shlex.quote(named)} " if named else ""
    return f"{place}.venv/bin/python -m e2e.demo stop"


def _suggest(command: str, meaning: str) -> None:
    say(f"    {command}")
    say(f"        {meaning}")
