"""Versions of definitions: one for each content, never changed, softly deleted."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.domain.errors import DefinitionNotFoundError, InvalidError
from partita.engine import Engine
from partita.settings import Settings
from tests.engine import support
from tests.engine.support import NAMESPACE, opened

Connection: TypeAlias = "asyncpg.Connection[Any]"


async def test_new_content_is_the_next_version_and_old_content_is_deployed_again(engine: Engine) -> None:
    first = await engine.deploy(NAMESPACE, "order", support.CHAIN, created_by="me")
    second = await engine.deploy(NAMESPACE, "order", support.DIAMOND)
    again = await engine.deploy(NAMESPACE, "order", support.CHAIN)
    assert [(one.version, one.created) for one in (first, second, again)] == [(1, True), (2, True), (1, False)]
    assert first.content_hash == again.content_hash != second.content_hash
    assert (await engine.resolve(NAMESPACE, "order")).version == 1
    assert set((await engine.resolve(NAMESPACE, "order", 2)).definition.nodes) == {"left", "right", "join"}


async def test_the_same_content_at_once_makes_one_version(
    settings: Settings, engine: Engine, other: Connection
) -> None:
    async with opened(settings) as second:
        deployed = await asyncio.gather(
            *(one.deploy(NAMESPACE, "order", support.CHAIN) for one in (engine, second)),
        )
    assert sorted(one.created for one in deployed) == [False, True]
    rows = await other.fetch("SELECT version, deployed FROM partita.workflow_definitions")
    assert [tuple(row) for row in rows] == [(1, True)]


async def test_every_problem_of_a_spec_is_told_and_nothing_is_stored(engine: Engine, other: Connection) -> None:
    spec = {"nodes": [support.task("a", "nowhere"), {"name": "b"}]}
    with pytest.raises(InvalidError) as caught:
        await engine.deploy(NAMESPACE, "order", spec)
    assert len(caught.value.problems) >= 2
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_definitions") == 0


async def test_a_deleted_definition_refuses_starts_and_comes_back_with_the_next_deployment(engine: Engine) -> None:
    await engine.deploy(NAMESPACE, "order", support.CHAIN)
    assert await engine.delete_definition(NAMESPACE, "order")
    assert not await engine.delete_definition(NAMESPACE, "order")
    for version in (None, 1):
        with pytest.raises(DefinitionNotFoundError):
            await engine.resolve(NAMESPACE, "order", version)
    assert (await engine.deploy(NAMESPACE, "order", support.DIAMOND)).version == 2
    assert (await engine.resolve(NAMESPACE, "order", 1)).version == 1


async def test_another_process_sees_a_deployment_at_once(settings: Settings, engine: Engine) -> None:
    async with opened(settings) as second:
        await engine.deploy(NAMESPACE, "order", support.CHAIN)
        assert (await second.resolve(NAMESPACE, "order")).version == 1
        await engine.deploy(NAMESPACE, "order", support.DIAMOND)
        assert (await second.resolve(NAMESPACE, "order")).version == 2
