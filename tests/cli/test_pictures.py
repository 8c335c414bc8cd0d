"""What a run and a node look like: what never began, what undo left, keys of items, and what is cut."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from partita.cli.backend import ChildLine, ItemLine, NodeDetail, NodeLine, RunDetail, RunLine
from partita.cli.draw import node_picture, picture
from partita.domain.state.rows import Loop
from partita.engine.projection import NodeSummary
from tests.cli.commands import Cli
from tests.cli.test_submit import definition, file, run

__all__ = ["file"]


def line(**changes: Any) -> RunLine:
    texts = dict.fromkeys(("id", "namespace", "waiting", "message"), "")
    fields = {**texts, "name": "one", "definition": "order", "version": 1, "stage": "main", "progress": "1/2"}
    return RunLine(**{**fields, "phase": "Running", "created_at": None, "finished_at": None, **changes})


def node(name: str, state: str, **more: Any) -> NodeLine:
    return NodeLine(**{"name": name, "stage": "main", "state": state, "attempt": 1, "message": "", **more})


def drawn(shown: Any) -> list[list[str]]:
    text = io.StringIO()
    Console(file=text, width=200).print(shown)
    return [words.split() for words in text.getvalue().splitlines()]


def detail(run: RunLine, *nodes: NodeLine) -> RunDetail:
    return RunDetail(run=run, nodes=nodes, output=None, error=None)


def test_nodes_that_never_began_are_not_run_once_the_run_has_ended() -> None:
    assert ["·", "late", "Pending"] in drawn(picture(detail(line(), node("late", "Pending"))))
    assert ["—", "late", "not", "run"] in drawn(picture(detail(line(phase="Failed"), node("late", "Pending"))))


def test_what_could_not_be_undone_is_a_line_of_its_own() -> None:
    failed = node("pay~undo", "Failed", stage="undo", message="runtime_error: no")
    shown = drawn(picture(detail(line(phase="Failed"), node("pay", "Completed"), failed)))
    assert ["undo", "failed:", "pay~undo", "(runtime_error:", "no)"] in shown


def test_how_many_children_are_not_shown() -> None:
    some = node("each", "Waiting", children=(ChildLine(id="c", index=0, phase="Running"),), more_children=7)
    assert ["└", "…", "7", "more"] in drawn(picture(detail(line(), some)))


@pytest.mark.parametrize(("error", "words"), [(None, "1/3; more"), ({"type": "e", "message": "m"}, "1/3")])
def test_a_loop_keeps_its_progress_and_its_keys(error: Any, words: str) -> None:
    item = ItemLine(index=0, key="a", state="Failed", attempt=1, message="", child="")
    shown = NodeDetail(
        run="r",
        name="each",
        index=None,
        kind="workflow",
        state="Failed",
        attempt=0,
        queue="",
        worker="",
        message="1/3; more",
        input=None,
        output=None,
        event=None,
        error=error,
        items=(item,),
        attempts=(),
        progress="1/3",
        child="c-1",
    )
    lines = drawn(node_picture(shown))
    assert lines[0] == ["each", "workflow", "Failed", *words.split(), "run", "c-1"]
    assert ["✘", "[a]", "Failed"] in lines


def test_children_beyond_those_that_are_looked_at_count_too() -> None:
    from partita.cli.shown import _hidden  # noqa: PLC0415  # a rule of its own

    loop = Loop(1_000, completed=300, failed=2, running=98)
    assert _hidden(NodeSummary(name="each", state="Waiting", attempt=0, message="", loop=loop), 100) == 395
    assert _hidden(NodeSummary(name="ship", state="Waiting", attempt=1, message=""), 1) == 0


def test_items_of_an_object_are_named_by_their_keys(on_database: Cli, file: Any) -> None:
    each = {
        "name": "each",
        "forEach": {"items": "${{'b': 1, 'a': 2}}"},
        "task": {"type": "x"},
        "input": {"of": "${key}"},
    }
    assert on_database("submit", file(definition(nodes=[each]), run("one"))).code == 0
    shown = on_database("get", "one", "--node", "each")
    assert [words.split()[1] for words in shown.out.splitlines() if "Queued" in words] == ["[a]", "[b]"]
    item = on_database("get", "one", "--node", "each", "--item", "b", "-o", "json").json
    assert (item["index"], item["key"], item["input"]) == (1, "b", {"of": "b"})
    assert "has 2 items, from 0; there is no item 99" in on_database("get", "one", "--node", "each", "--item", "99").err
    assert "expected its number or its key" in on_database("get", "one", "--node", "each", "--item", "c").err


def test_lines_in_a_pipe_end_without_blanks(on_database: Cli, file: Any) -> None:
    done = [on_database("submit", file(definition(), run("one"))), on_database("list"), on_database("get", "one")]
    assert all(words == words.rstrip() for each in done for words in each.out.splitlines())
    assert '{"status":' not in done[1].out


def test_a_signal_that_nobody_waits_for_says_what_is_waited_for(on_database: Cli, file: Any) -> None:
    on_database("submit", file(definition(), run("one")))
    assert "Accepted\nnobody waits for aks yet; the run waits for: ask" in on_database("signal", "one", "aks").err
    assert on_database("signal", "one", "ask").err == "signal ask to one: Consumed\n"
    assert "run one: signal more: RunFinished" in on_database("signal", "one", "more").err


def test_without_a_cluster_and_a_database_both_are_named(partita: Cli) -> None:
    missing = partita("get", "one")
    assert "--database-url URL, or export PARTITA_DATABASE_URL=URL" in missing.err
    assert "PARTITA_DATABASE_URL" not in partita("get", "one", "--kubeconfig", "/nonexistent").err
