"""Reads YAML (and so JSON) files as kubectl does.

Invariant: what is read here is what the API server gets from ``kubectl apply``, except that two kinds of keys are
refused where kubectl silently changes what was meant: a key written twice (it takes the last), and an unquoted ``n`` or
``on`` (it makes ``false`` or ``true`` of it). Aliases are counted as they expand, so that a small file stays small.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from typing import Any, Final

import yaml

from partita.domain.errors import InvalidError, Problem
from partita.domain.manifest.limits import PROBLEMS
from partita.domain.manifest.scalars import BOOLEAN_WORDS, key_text, plain_scalar
from partita.domain.payload import Json
from partita.domain.places import shortened

MOST_CHARACTERS: Final = 16_777_216
MOST_VALUES: Final = 1_000_000
"""Values of one document after aliases are expanded; a long text counts as several."""
_TEXT_PER_VALUE: Final = 32
"""Characters of a text that count as one value more."""
_DEEPEST: Final = 150
_PLAIN: Final = "!plain!"
_TAG: Final = "tag:yaml.org,2002:"

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # the base is chosen at run time
    """Composes nodes only; which scalars are numbers or words is decided when they are built."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:  # noqa: ARG002  # the library's signature
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else f"{_TAG}str"
        return f"{_TAG}seq" if kind is yaml.SequenceNode else f"{_TAG}map"


class _BadYamlError(Exception):
    """Something that JSON cannot say, at a node; never leaves this module."""

    def __init__(self, node: yaml.Node, message: str) -> None:
        super().__init__(message)
        self.problem = _at(node, message)


def _at(node: yaml.Node, message: str) -> Problem:
    return Problem(f"line {node.start_mark.line + 1}", message)


def read_documents(text: str) -> tuple[tuple[dict[str, Json], ...], tuple[Problem, ...]]:
    """The objects of a file, empty documents left out, and the keys in them that are refused.

    Raises InvalidError that names line and problem for what cannot be read at all.
    """
    if len(text) > MOST_CHARACTERS:
        raise InvalidError(
            "manifest", (Problem("", f"has {len(text):,} characters; expected at most {MOST_CHARACTERS:,}"),)
        )
    keys: list[Problem] = []
    try:
        return tuple(_documents(text, keys)), tuple(keys)
    except _BadYamlError as error:
        raise InvalidError("manifest", (*keys, error.problem)) from error
    except yaml.YAMLError as error:
        raise InvalidError("manifest", (*keys, _syntax(error))) from error
    except RecursionError as error:
        raise InvalidError("manifest", (*keys, Problem("", "is nested too deeply"))) from error


def _documents(text: str, keys: list[Problem]) -> Iterator[dict[str, Json]]:
    for node in yaml.compose_all(text, Loader=_Loader):
        if node is not None and not _is_empty(node):
            yield _Builder(keys).document(node)


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _PLAIN and plain_scalar(node.value) is None


def _syntax(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}" if mark is not None else ""
    message = getattr(error, "problem", None) or str(error).splitlines()[0]
    return Problem(place, f"is not YAML: {message}")


class _Builder:
    """Builds the JSON value of one document."""

    def __init__(self, keys: list[Problem]) -> None:
        self._keys = keys
        """Problems of keys, which do not keep the rest from being read."""
        self._built: dict[int, tuple[Json, int]] = {}
        self._open: set[int] = set()
        self._merged = 0
        """Keys copied by ``<<`` so far, all objects together."""

    def document(self, node: yaml.Node) -> dict[str, Json]:
        value = self._sized(node, 0)[0]
        if isinstance(value, dict):
            return value
        raise _BadYamlError(node, "the document is not an object; expected apiVersion, kind, metadata and spec")

    def _sized(self, node: yaml.Node, depth: int) -> tuple[Json, int]:
        """A node's value and how many values it holds; an alias counts again, though it is built once."""
        known = self._built.get(id(node))
        if known is None:
            if id(node) in self._open:
                raise _BadYamlError(node, "an alias refers to what it stands in")
            if depth > _DEEPEST:
                raise _BadYamlError(node, f"is nested more than {_DEEPEST} levels deep")
            self._open.add(id(node))
            known = self._new(node, depth)
            self._open.discard(id(node))
            self._built[id(node)] = known
        return known

    def _new(self, node: yaml.Node, depth: int) -> tuple[Json, int]:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            parts = [self._sized(item, depth + 1) for item in node.value]
            return [value for value, _ in parts], 1 + sum(size for _, size in parts)
        return _scalar(node), 1 + len(node.value) // _TEXT_PER_VALUE

    def _mapping(self, node: yaml.MappingNode, depth: int) -> tuple[Json, int]:
        result: dict[str, Json] = {}
        merged: dict[str, Json] = {}
        size = 1
        for key_node, value_node in node.value:
            key_value, key_count = self._sized(key_node, depth + 1)
            is_merge = key_node.tag == _PLAIN and key_node.value == "<<"
            key = "" if is_merge else self._key(key_node, key_value, result)
            value, count = self._sized(value_node, depth + 1)
            size += count + key_count - 1
            if size > MOST_VALUES:
                raise _too_large(node)
            if is_merge:
                self._merge(merged, key_node, value)
            else:
                result[key] = value
        return {**merged, **result} if merged else result, size + len(merged)

    def _key(self, node: yaml.Node, value: Json, others: dict[str, Json]) -> str:
        """The key as JSON has it; one that is refused stays as it is written, so that it is told once."""
        key = key_text(value)
        if key is None:
            raise _BadYamlError(node, "this cannot be a key; expected a text")
        if node.tag == _PLAIN and str(node.value).lower() in BOOLEAN_WORDS:
            self._refuse(node, f'YAML reads the key {node.value} as {key}; quote it: "{node.value}"')
            return str(node.value)
        if key in others:
            self._refuse(node, f"the key {shortened(key)!r} stands twice in this object")
        return key

    def _refuse(self, node: yaml.Node, message: str) -> None:
        if len(self._keys) < PROBLEMS:
            self._keys.append(_at(node, message))

    def _merge(self, merged: dict[str, Json], node: yaml.Node, value: Json) -> None:
        """Add what ``<<`` brings; what came first stays."""
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise _BadYamlError(node, "<< needs an object or a list of objects")
        for part in parts:
            self._merged += len(part)
            if self._merged > MOST_VALUES:
                raise _too_large(node)
            for key, item in part.items():
                merged.setdefault(key, item)


def _too_large(node: yaml.Node) -> _BadYamlError:
    return _BadYamlError(node, f"expands to more than {MOST_VALUES:,} values")


def _scalar(node: yaml.Node) -> Json:
    tag, text = node.tag, str(node.value)
    if tag == f"{_TAG}binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
        except binascii.Error as error:
            raise _BadYamlError(node, f"is not Base64: {error}") from error
    if tag not in (_PLAIN, f"{_TAG}int", f"{_TAG}float", f"{_TAG}bool", f"{_TAG}null"):
        return text
    value = plain_scalar(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise _BadYamlError(node, f"{shortened(text)} is not a JSON number; expected a number or a quoted text")
    return value
