"""Settings: names, bounds, spelling, and every field explained."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from partita import settings as module
from partita.domain.errors import InvalidError
from partita.domain.state.slices import Limits
from partita.engine.coordinator import limits_of
from partita.environment import variable
from partita.settings import Settings

SECTIONS: dict[str, type] = get_type_hints(Settings)


def test_nothing_set_is_the_defaults() -> None:
    assert Settings.load({}) == Settings()
    assert Settings.load({"PARTITA_ENGINE_BATCH_SIZE": " ", "HOME": "/x", "PARTITA_TEST_POSTGRES": "15"}) == Settings()


def test_decisions_have_the_same_bounds_without_settings() -> None:
    assert limits_of(Settings()) == Limits()


def test_every_kind_of_value_is_read() -> None:
    loaded = Settings.load(
        {
            "PARTITA_DATABASE_URL": "postgresql://db",
            "PARTITA_MIGRATIONS_URL": "postgresql://direct",
            "PARTITA_DATABASE_POOLED": "true",
            "PARTITA_ENGINE_BATCH_SIZE": "7",
            "PARTITA_WORKER_QUEUES": "gpu, default,",
        }
    )
    assert (loaded.database.url, loaded.database.migrations_url) == ("postgresql://db", "postgresql://direct")
    assert loaded.database.pooled
    assert loaded.engine.batch_size == 7
    assert loaded.worker.queues == ("gpu", "default")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PARTITA_ENGINE_BATCH_SIZE", "many", "expected a whole number from 1 to"),
        ("PARTITA_ENGINE_BATCH_SIZE", "0", "expected a whole number from 1 to"),
        ("PARTITA_ENGINE_BATCH_SIZE", "7.5", "expected a whole number from 1 to"),
        ("PARTITA_DATABASE_POOLED", "maybe", "expected true or false"),
        ("PARTITA_DATABASE_PLANNER", "both", "expected auto or role"),
        ("PARTITA_WORKER_HEARTBEAT_MS", "20000", "expected less than half of lease_ms"),
        ("PARTITA_ENGINE_BATHC_SIZE", "7", "did you mean PARTITA_ENGINE_BATCH_SIZE?"),
    ],
)
def test_a_bad_variable_is_named_with_what_was_expected(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidError, match=re.escape(name)) as caught:
        Settings.load({name: value})
    assert message in str(caught.value)


def test_all_bad_variables_are_named_at_once() -> None:
    with pytest.raises(InvalidError) as caught:
        Settings.load({"PARTITA_ENGINE_BATCH_SIZE": "x", "PARTITA_WORKER_SLOTS": "-1", "PARTITA_WORKER_SLOT": "1"})
    assert [problem.path for problem in caught.value.problems] == [
        "PARTITA_ENGINE_BATCH_SIZE",
        "PARTITA_WORKER_SLOTS",
        "PARTITA_WORKER_SLOT",
    ]


def test_variables_that_kubernetes_sets_for_services_are_no_settings() -> None:
    links = {
        "PARTITA_OPERATOR_SERVICE_HOST": "10.0.0.1",
        "PARTITA_OPERATOR_SERVICE_PORT_HTTP": "8080",
        "PARTITA_OPERATOR_PORT": "tcp://10.0.0.1:8080",
        "PARTITA_OPERATOR_PORT_8080_TCP_ADDR": "10.0.0.1",
    }
    assert Settings.load(links) == Settings()


def test_no_setting_can_be_taken_for_a_service_variable() -> None:
    names = [variable(section, item.name) for section, kind in SECTIONS.items() for item in fields(kind)]
    assert [name for name in names if re.search(r"_(PORT|HOST|ADDR|PROTO)(_|$)", name)] == []


def test_every_field_has_a_docstring() -> None:
    bare = []
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name in {kind.__name__ for kind in SECTIONS.values()}:
            for item, after in zip(node.body, [*node.body[1:], None], strict=True):
                if isinstance(item, ast.AnnAssign) and not isinstance(after, ast.Expr):
                    bare.append(f"{node.name}.{ast.unparse(item.target)}")
    assert bare == []
