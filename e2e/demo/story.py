"""The story: install, apply a workflow, watch it, send the event it waits for, read the result."""

import shlex

from e2e.cluster.waiting import wait_until
from e2e.demo.shell import Shell, heading, say
from e2e.demo.stage import NAMESPACE, Stage

RUN = "order-1"
EVENT = '[{"op":"add","path":"/spec/signals/-","value":{"id":"a1","name":"approval","payload":{"by":"me"}}}]'


def tell(stage: Stage) -> None:
    """Play it from the first command to the result."""
    shell = stage.shell()
    _install(stage, shell)
    _run(shell)
    _result(shell)


def _install(stage: Stage, shell: Shell) -> None:
    heading("Install: the schema, the kinds, the operator and a worker")
    shell.run("partita migrate")
    shell.run("kubectl apply -f crds/ --server-side")
    shell.run(f"kubectl create namespace {NAMESPACE}")
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
    watch = shell.streaming(f"kubectl -n {NAMESPACE} get workflowruns -w")
    try:
        shell.run(f"kubectl -n {NAMESPACE} apply -f examples/order.yaml")
        watch.wait_for(RUN, "approval", seconds=60)
        heading("It waits for an event: send it")
        shell.run(f"kubectl -n {NAMESPACE} patch workflowrun {RUN} --type=json -p {shlex.quote(EVENT)}")
        watch.wait_for(RUN, "Succeeded", seconds=60)
    finally:
        watch.stop()


def _result(shell: Shell) -> None:
    heading("The result")
    shell.run(f"kubectl -n {NAMESPACE} wait workflowrun/{RUN} --for=condition=Completed --timeout=30s")
    shell.run(f"kubectl -n {NAMESPACE} get workflowrun {RUN} -o wide")
    shell.run(f"kubectl -n {NAMESPACE} get workflowrun {RUN} -o jsonpath={{.status.output}}")
    say()
    shell.run("partita list")


def next_steps(stage: Stage, *, kept: bool) -> None:
    """What to try next, and how to reach and stop what still runs."""
    heading("What to try next")
    if not kept:
        say("  make demo KEEP=1                                    leave all of it running, to play with")
        say('  partita dev run examples/order.yaml --event approval=\'{"by":"me"}\'    the same without a cluster')
        say("  partita lint examples/order.yaml                    every problem of a manifest")
        say("  docs/manifests.md                                   what manifests can say")
        say("  (partita is in .venv/bin)")
        return
    say("  Everything still runs. To reach it, in a shell of yours:")
    for name, value in stage.environment().items():
        say(f"    export {name}={shlex.quote(value)}")
    say(f'    export PATH="$PWD/.venv/bin:{stage.cluster.kubectl.parent}:$PATH"')
    say(f"    kubectl -n {NAMESPACE} get workflowruns")
    say(f"    kubectl -n {NAMESPACE} explain workflowrun.spec")
    say("    partita list")
    say("  To stop it:")
    say("    .venv/bin/python -m e2e.demo stop")
