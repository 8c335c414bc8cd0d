"""Our YAML reader and a real kubectl make the same of the same text."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from partita.domain.manifest import load_documents
from tests.kube.crd_api import Api
from tests.unit.manifest.yaml_table import GOLDEN, KEYS

_ALPHABET = "0123456789+-._:eExXoOabynYNTZ~"


def test_scalars_and_keys_are_read_as_kubectl_reads_them(api: Api) -> None:
    values = [_run(f"v: {written}") for written, _ in GOLDEN]
    keys = [_run(f"{written}: 1") for written, _ in KEYS]
    expected = [{"v": value} for _, value in GOLDEN] + [{key: 1} for _, key in KEYS]
    assert _inputs_by_kubectl(api, values + keys) == expected


def test_random_plain_scalars_are_read_as_kubectl_reads_them(api: Api) -> None:
    documents = [_run(f"v: {scalar}") for scalar in _scalars(400)]
    ours = [load_documents(document)[0]["spec"]["input"] for document in documents]
    theirs = _inputs_by_kubectl(api, documents)
    wrong = [(one, other) for one, other in zip(ours, theirs, strict=True) if _typed(one) != _typed(other)]
    assert wrong == []


def _scalars(count: int) -> Iterator[str]:
    source = random.Random(20)  # noqa: S311  # the same scalars in every run
    while count:
        text = "".join(source.choices(_ALPHABET, k=source.randint(1, 7)))
        if text[0] not in "-:" and ":" not in text[-1] and "e" not in text.lower()[:1]:
            count -= 1
            yield text


def _run(line: str) -> str:
    indented = line.replace("\n", "\n    ")
    return (
        "apiVersion: partita.dev/v1alpha1\nkind: WorkflowRun\nmetadata: {name: x}\n"
        f"spec:\n  definitionRef: {{name: x}}\n  input:\n    {indented}\n"
    )


def _inputs_by_kubectl(api: Api, documents: Iterable[str]) -> list[Any]:
    text = "---\n".join(documents)
    answer = api.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", stdin=text)
    return [document["spec"]["input"] for document in _objects(answer)]


def _objects(answer: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(parse_int=_number), 0
    while at < len(answer.rstrip()):
        value, at = decoder.raw_decode(answer, at)
        yield from value["items"] if value["kind"] == "List" else [value]
        at += len(answer[at:]) - len(answer[at:].lstrip())


def _number(text: str) -> int | float:
    """An integer of 64 bits, else a double: kubectl writes doubles without decimals where it can."""
    return int(text) if -(2**63) <= int(text) < 2**63 else float(text)


def _typed(value: Any) -> bytes:
    """JSON text, in which 1, 1.0 and true differ."""
    return orjson.dumps(value)
