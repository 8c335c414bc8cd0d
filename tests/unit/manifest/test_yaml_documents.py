"""YAML as kubectl reads it. ``tests/kube`` compares this table with a real kubectl."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.errors import InvalidError
from partita.domain.manifest import load_documents
from partita.domain.manifest.scalars import BOOLEAN_WORDS
from tests.unit.manifest.yaml_table import GOLDEN, KEYS


def read(text: str) -> Any:
    (document,) = load_documents(text)
    return document


@pytest.mark.parametrize(("written", "expected"), GOLDEN)
def test_scalars(written: str, expected: Any) -> None:
    found = read(f"v: {written}\n")["v"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("written", "expected"), KEYS)
def test_keys(written: str, expected: str) -> None:
    assert read(f"{written}: 1\n") == {expected: 1}


def test_documents_are_separated_and_empty_ones_left_out() -> None:
    text = "---\na: 1\n---\n---\n# nothing\n---\nnull\n---\nb: 2\n...\n"
    assert load_documents(text) == ({"a": 1}, {"b": 2})
    assert load_documents("") == ()


def test_json_is_yaml() -> None:
    assert read('{"a": [1, 2.5, null, "x", true]}') == {"a": [1, 2.5, None, "x", True]}


def test_anchors_and_merges() -> None:
    text = "base: &b {x: 1, w: 2}\none: {<<: *b, w: 3}\ntwo: {w: 3, <<: [*b, {x: 9, z: 4}]}\n"
    assert read(text) == {"base": {"x": 1, "w": 2}, "one": {"x": 1, "w": 3}, "two": {"x": 1, "w": 3, "z": 4}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2\n", "line 2: the key 'a' stands twice in this object"),
        ("x:\n  w: 1\n  'w': 2\n", "line 3: the key 'w' stands twice in this object"),
        ("True: 1\n'true': 2\n", "line 2: the key 'true' stands twice in this object"),
        ("a: {n: 1}\n", 'line 1: YAML reads the key n as false; quote it: "n"'),
        ("a: [{On: 1}]\n", 'line 1: YAML reads the key On as true; quote it: "On"'),
        ("- 1\n", "line 1: the document is not an object; expected apiVersion, kind, metadata and spec"),
        ("text\n", "line 1: the document is not an object; expected apiVersion, kind, metadata and spec"),
        ("a: [1\n", "line 2: is not YAML: did not find expected ',' or ']'"),
        ("a: *b\n", "line 1: is not YAML: found undefined alias"),
        ("a: &a [*a]\n", "line 1: an alias refers to what it stands in"),
        ("a: .nan\n", "line 1: .nan is not a JSON number; expected a number or a quoted text"),
        ("? [1]\n: 2\n", "line 1: this cannot be a key; expected a text"),
        ("~: 2\n", "line 1: this cannot be a key; expected a text"),
        ("a: " + "[" * 200 + "]" * 200, "line 1: is nested more than 150 levels deep"),
        ("a: {<<: 1}\n", "line 1: << needs an object or a list of objects"),
        ("a: !!binary '#'\n", "line 1: is not Base64: Only base64 data is allowed"),
        ("a: 1\n---\nb: {c: 1, c: 2}\n", "line 3: the key 'c' stands twice in this object"),
    ],
)
def test_files_with_a_mistake(text: str, expected: str) -> None:
    with pytest.raises(InvalidError) as caught:
        load_documents(text)
    assert [str(problem) for problem in caught.value.problems] == [expected]


@pytest.mark.parametrize("word", BOOLEAN_WORDS)
def test_words_that_yaml_takes_for_booleans_are_refused_as_keys(word: str) -> None:
    for written in (word, word.capitalize(), word.upper()):
        with pytest.raises(InvalidError, match=f'quote it: "{written}"'):
            load_documents(f"a: {{{written}: 1}}")
        assert read(f"a: {{'{written}': 1}}") == {"a": {written: 1}}


BROKEN = """\
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: x}
spec:
  nodes:
    - {name: a, compute: {n: 1}}
    - {name: b, name: b, tsk: {type: x}}
"""


def test_a_refused_key_hides_nothing_else() -> None:
    with pytest.raises(InvalidError) as caught:
        load_documents(BROKEN)
    assert [problem.path for problem in caught.value.problems] == [
        "line 6",
        "line 7",
        "spec.nodes[1]",
        "spec.nodes[1].tsk",
    ]
    with pytest.raises(InvalidError) as caught:
        load_documents(f"kind: Other\n---\n{BROKEN}")
    assert caught.value.problems[-1].path == "document 2: spec.nodes[1].tsk"


def test_aliases_that_expand_without_end_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(InvalidError, match=r"expands to more than 1,000,000 values"):
        load_documents("\n".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        ["a: &a " + "x" * 100_000, "b: [" + ", ".join(["*a"] * 1_000) + "]"],
        ["a: &a {" + "x" * 1_000 + ": 1}", "b: [" + ", ".join(["*a"] * 50_000) + "]"],
        ["a: &a {" + ", ".join(f"k{n}: 1" for n in range(2_000)) + "}", "b: [" + ", ".join(["{<<: *a}"] * 1_000) + "]"],
        ["a: &a {" + ", ".join(f"k{n}: 1" for n in range(2_000)) + "}", "b: {<<: [" + ", ".join(["*a"] * 1_000) + "]}"],
    ],
    ids=["texts", "keys", "merged", "merged lists"],
)
def test_aliases_of_what_is_large_count_by_its_size(lines: list[str]) -> None:
    with pytest.raises(InvalidError, match=r"expands to more than 1,000,000 values"):
        load_documents("\n".join(lines))


def test_copies_of_a_large_object_stop_where_they_become_too_many() -> None:
    large = ", ".join(f"k{n}: 1" for n in range(2_000))
    with pytest.raises(InvalidError, match=r"line 503: expands to more than 1,000,000 values"):
        load_documents("\n".join(["a: &a {" + large + "}", "b:", *["- {<<: *a}"] * 1_000]))


def test_many_objects_are_merged_each_once() -> None:
    parts = ", ".join(f"{{k{n}: {n}, first: {n}}}" for n in range(20_000))
    (document,) = load_documents(f"a: {{<<: [{parts}], own: 1}}")
    assert len(document["a"]) == 20_002
    assert document["a"]["first"] == 0


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abxyn01~.:-", max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["a", "b"]), json_values, min_size=1))
def test_what_is_written_as_json_is_read_back(value: dict[str, Any]) -> None:
    assert read(orjson.dumps(value).decode()) == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(InvalidError):
        for document in load_documents(text):
            assert isinstance(document, dict)


def test_no_number_is_read_that_json_does_not_have() -> None:
    for written, expected in GOLDEN:
        assert not isinstance(expected, float) or math.isfinite(expected), written
