#!/usr/bin/env python3
"""Makes docs/cli.md from the command line itself.

usage: cli_page.py [--check]        writes the page; --check only says whether it is current (exit code 1 if not)

The words about targets and output are written here; commands, options and exit codes come from the application.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from partita.cli.exits import MEANING
from partita.cli.main import build

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
HEAD = """# The command line

`partita` looks at runs and changes them, tries workflows without a cluster, and starts the processes.
(`python scripts/cli_page.py` writes this page from the application; `partita COMMAND --help` says more.)

## Where a command goes

1. `--database-url` names a PostgreSQL, `--kubeconfig` or `--context` a cluster: the command goes there.
2. Otherwise to the database of `PARTITA_DATABASE_URL`, where that is set.
3. Otherwise to the cluster of the kubeconfig, as kubectl finds it.

`kubectl partita …` is the same program as a plugin of kubectl (it only has to be on the `PATH`); it always means the
cluster, and has the commands about runs. Where kubectl completes words in your shell (`kubectl completion`), it
completes those of the plugin too, names of runs included; for `partita` itself, `partita --install-completion` does.

The two see the same runs. The database has all of them, also those without an object, and all of their history; a run
is named by its id, or by its object's name in its namespace. The cluster needs no access to the database: a person's
own rights decide, a change is a patch of the object, and the command waits five seconds for the operator's answer.
A run that `partita submit` starts in a database keeps the `metadata.name` of its manifest, but there names are not
unique: submitting again starts another run of the same name. A name then means the newest unfinished run, else the
newest finished one; the id that `submit` prints always means the same run.
Objects that the operator refused, or that wait for their definition, are no runs yet: only the cluster shows them.

`partita submit` deploys the definitions of a file first, wherever they stand in it. Before the first change it looks up
the definition of every run (in the file, else where it goes) and checks its input, its key and its id as far as the
place can tell; where a start fails nevertheless, the table of what was started comes before the error.

`partita submit NAME --inputs FILE` starts a run of the deployed definition `NAME` for each line of `FILE`, JSON Lines
of one input each, in transactions of hundreds (so that tens of thousands of runs take seconds). Each line is answered
by itself; one that is refused stops no other, and the exit code is that of the first. With `--idempotency-prefix may-`
the run of line 7 has the key `may-7`: a file that was sent in part, or whose answer was lost, is sent again as it is,
and only what is missing starts. Up to 100 lines are listed, of more only those that were refused; `-o json` has all.

`partita signal` says what became of the event: `Accepted` (kept until the run waits for it; a line says what it waits
for instead), `Consumed`, `Already sent`, or, of a cluster whose operator did not answer in time, `Sent`. It is a line
on standard error, as of every change, and with `-o json` a value on standard output. A refused one is an error (exit
code 4).

A change through the database is recorded as that of `user@host`, the person and the machine of the command; one through
the cluster as the object's, and who patched it stands in the audit log of the API server.

## Looking at a run

`get` and `watch` show a line for each node, in the order of the definition, and below `undo` and `finally` what these
stages have. A loop is one line, however many items it has, with its progress: settled of all items, how many failed,
how many run. Child runs stand below the node that started them (of a loop five, failed ones first, and how many more).
Nodes that had not begun when the run ended are `not run`; what could not be reversed is a line `undo failed: …`.

    parcel-1  parcel v1  Running  2/5  12s
      ✔  reserve  Completed
      ◔  pack     Waiting    412/1000 · 3 failed · 10 running
         └ run [17] 019a…  Failed
      ·  ship     Pending

`partita get RUN --node pack` shows one node: its input, its output (of a loop that goes on what its items gave so far,
null for the others), a page of its items and its newest attempts with worker, time and error; `--item 17` one item (of
an object also by its key, `--item alice`), `--node charge~undo` what reverses a node. `partita list --parent RUN` lists
children, those of subflows too, which no other list has; each is a run of its own that `get`, `watch`, `history` and
`list --parent` take by its id. Events for a subflow are sent to the run that holds it. Numbers of `history` grow and
leave some out: signals and waits have theirs from the same row.

A cluster shows at most twenty nodes, no items, and of children their ids; the rest of this needs the database.

`partita cancel RUN --node NAME` cancels unsettled nodes while the run goes on, each once; their edges die, and that is
no failure. A name that the run does not have is an error; of a node that has settled the command says so.

## Trying a manifest

`partita dev run FILE` serves every queue that the file names. With the embedded database it works in namespaces of its
own (`default-1f2e3d4c`), so that it executes nothing but the runs of the file; with `--database-url` it serves the
namespaces of the file, and other runs that are there too. What is unfinished when it ends, by Ctrl-C too, is cancelled,
and said. An `--event` whose payload breaks the schema is named, and the run waits on.

## Dead letters

A message between runs, or a timer, that could not be applied ten times is given up, so that it holds nothing else up
(a defect, or data that PostgreSQL refuses); the condition `Synced` of the run's object is False for a timer. Remove the
cause, mostly by a newer version, and drive it again:

    partita dead-letters list                   # id, run, what it is, failures, the last error
    partita dead-letters retry 42               # or --run RUN, or --all
    partita dead-letters delete 42              # a message that can never be applied: what it says is lost

A timer is not deleted, since its run would wait for ever: cancel the run.

## Output

The result goes to standard output: a table (in a pipe no line is folded; a cell longer than 1,000 characters is cut),
or with `-o json` one JSON value (`watch -o json`: one each time the run changes). Hints and errors go to standard
error; an error is one line that names the object, what is wrong, what was expected, and what to try.
"""
SHARED = {"namespace", "output", "database_url", "kubeconfig", "context", "help", "version"}
"""Options that many commands have; the table leaves them out."""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD, "## Commands\n"]
    groups: dict[str, list[str]] = {}
    for words, command, panel in commands():
        options = ", ".join(f"`{max(option.opts, key=len)}`" for option in command.params if _own(option))
        usage = " ".join(("partita", *words, *(_argument(each) for each in command.params if not _is_option(each))))
        groups.setdefault(panel, []).append(f"| `{usage}` | {_prose(command.help)} | {options} |")
    for panel, rows in groups.items():
        parts.append(f"### {panel}\n\n| command | what it does | options |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    parts.append(
        "Most have `-o json`; those about runs also `-n NAMESPACE`, `--database-url`, `--kubeconfig` and `--context`.\n"
    )
    codes = "\n".join(f"| {code.value} | {text} |" for code, text in MEANING.items())
    parts.append(f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n")
    return "\n".join(parts)


def commands() -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """Yield the words, the command and the panel of every command."""
    for name, command in typer.main.get_command(build()).commands.items():  # type: ignore[attr-defined]  # it is a group
        for below, child in getattr(command, "commands", {"": command}).items():
            yield (name, below) if below else (name,), child, command.rich_help_panel


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _own(parameter: Any) -> bool:
    return _is_option(parameter) and parameter.name not in SHARED


def _argument(parameter: Any) -> str:
    return str(parameter.metavar)


def _prose(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write or check the page; returns the exit code."""
    if arguments == ["--check"]:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page()
        print("docs/cli.md: current" if current else "docs/cli.md: out of date; try: scripts/cli_page.py")
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
