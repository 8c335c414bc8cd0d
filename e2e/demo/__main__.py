"""`python -m e2e.demo`: play the demo; `python -m e2e.demo stop`: take down one that was kept (KEEP=1).

Exit codes: 0 ok · 1 a step failed · 2 usage · 130 interrupted. PARTITA_DEMO_HOME names another folder for it.
"""

import os
import subprocess
import sys
from pathlib import Path

from e2e.cluster.errors import ClusterError, ProviderUnavailable
from e2e.demo import stage, story
from e2e.demo.shell import ROOT, heading, say
from partita.domain.errors import PartitaError

DEV = ["dev", "run", "examples/order.yaml", "--event", 'approval={"by":"me"}']


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    os.environ["KUBECACHEDIR"] = str(stage.home() / "kubectl-cache")  # the default is in the person's ~/.kube
    if arguments == ["stop"]:
        say("demo: stopped" if stage.stop() else "demo: none is running")
        return 0
    if arguments:
        say(f"demo: {' '.join(arguments)}: expected nothing, or stop")
        return 2
    keep = os.environ.get("KEEP", "") not in ("", "0")
    try:
        with stage.raised(keep=keep) as raised:
            story.tell(raised)
            story.next_steps(raised, kept=keep)
    except ProviderUnavailable as error:
        return _without_cluster(str(error))
    except (ClusterError, PartitaError) as error:
        say(f"demo: {error}")
        say(f"demo: logs, if any, are in {stage.home()}, until the next demo or `{story.stop_command()}`")
        return 1
    except KeyboardInterrupt:
        say("\ndemo: interrupted; all of it is taken down")
        return 130
    return 0


def _without_cluster(reason: str) -> int:
    """The same manifests on this machine alone."""
    say(f"demo: {reason}")
    heading(
        "The same manifests without a cluster: partita dev, with an embedded PostgreSQL and a worker in one process"
    )
    say('$ partita dev run examples/order.yaml --event approval=\'{"by":"me"}\'')
    return subprocess.run([str(Path(sys.executable).parent / "partita"), *DEV], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
