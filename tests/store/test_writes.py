"""Statements of a batch that only loops and children need."""

from __future__ import annotations

from uuid import UUID

from partita.domain.ids import make_id, to_milliseconds
from partita.minting import new_id
from partita.store import columns, failures, fences, slices
from partita.store.database import Database
from partita.store.slices import TaskRequest
from partita.store.writes import insert_messages
from tests.store.records import insert, insert_run

MANY = 10_000


async def new_run(database: Database) -> UUID:
    run_id = make_id(to_milliseconds(await database.clock()), 7)
    await insert_run(database, run_id, status="Running")
    return run_id


async def test_waits_of_a_child_and_its_owner_are_told_apart(database: Database) -> None:
    """The owner's node and the child's have the same name."""
    run_id, child, other = await new_run(database), new_id(), new_id()
    now = await database.clock()
    for seq, waiting in enumerate((None, child, other)):
        await insert(
            database, "waits", run_id=run_id, since=now, seq=seq, index=0, name="answer", node="ask", child_id=waiting
        )
    dedicated = database.dedicated("test")

    async def clear(*key: object) -> set[UUID | None]:
        async with dedicated.transaction() as connection:
            await connection.fetch(database.sql("clear_waits"), *columns.arrays([key]))
            return {
                wait.child for wait in (await slices.load_mailboxes(connection, database.sql, [run_id]))[run_id].waits
            }

    assert await clear(run_id, "ask", 0, None) == {child, other}
    assert await clear(run_id, "ask", 0, child) == {other}
    assert await clear(run_id, None, 0, None) == set()
    await dedicated.close()


async def test_messages_are_numbered_in_their_order_and_left_to_their_sender_for_a_moment(database: Database) -> None:
    runs = [new_id() for _ in range(300)]
    rows = [(run_id, "LoopContinued", f'{{"n": {number}}}') for number, run_id in enumerate(reversed(runs))]
    dedicated = database.dedicated("test")
    async with dedicated.transaction() as connection:
        ids = await insert_messages(connection, database.sql, rows, 60_000)
        assert ids == sorted(ids)
        stored = await connection.fetch("SELECT id, run_id, body ->> 'n' AS n FROM partita.run_inbox ORDER BY id")
        assert [(row["id"], row["run_id"], int(row["n"])) for row in stored] == [
            (number, row[0], place) for place, (number, row) in enumerate(zip(ids, rows, strict=True))
        ]
        assert await connection.fetch(database.sql("due_inbox"), ["LoopContinued"], 10, 0) == []
        await insert_messages(connection, database.sql, [(new_id(), "LoopContinued", "{}")] * 2, 0)
        assert len(await connection.fetch(database.sql("due_inbox"), ["LoopContinued"], 10, 0)) == 2
        assert await connection.fetch(database.sql("due_inbox"), ["signal"], 10, 0) == []
    await dedicated.close()


async def test_a_message_is_out_of_turn_behind_one_that_is_not_in_the_batch(database: Database) -> None:
    run_id, other = new_id(), new_id()
    dedicated = database.dedicated("test")
    async with dedicated.transaction() as connection:
        sql = database.sql
        a, b, c = await insert_messages(connection, sql, [(run_id, "LoopContinued", "{}")] * 3, 0)
        (d,) = await insert_messages(connection, sql, [(other, "LoopContinued", "{}")], 0)
        assert await fences.out_of_turn(connection, sql, [(run_id, a), (run_id, b), (other, d)]) == set()
        assert await fences.out_of_turn(connection, sql, [(run_id, c), (run_id, a), (other, d)]) == {c}
        await failures.fail_inbox(connection, sql, b, "dead", final=True)
        assert await fences.out_of_turn(connection, sql, [(run_id, c), (run_id, a)]) == set()
    await dedicated.close()


async def test_ten_thousand_items_are_written_and_read_by_one_statement_each(database: Database) -> None:
    run_id = await new_run(database)
    now = await database.clock()
    row = (None, None, None, now, None, None, True, False)
    rows = [
        (run_id, index, 0, 0, 0, *row, "Pending", None, None, None, None, None, f'"{index}"', None, "q", "task", "each")
        for index in range(-1, MANY)
    ]
    dedicated = database.dedicated("test")
    async with dedicated.transaction() as connection:
        await connection.fetch(database.sql("insert_tasks"), *columns.arrays(rows))
        changed = [(*one[:13], "Cancelled", *one[14:19], None, *one[20:]) for one in rows]
        await connection.fetch(database.sql("update_tasks"), *columns.arrays(changed), run_id, run_id)
        wanted = [TaskRequest(run_id, "each", index, payload=True) for index in range(-1, MANY)]
        found = await slices.load_tasks(connection, database.sql, wanted)
        whole = await slices.load_whole_runs(connection, database.sql, [run_id])
    await dedicated.close()
    assert {task.state.value for _, task in found} == {"Cancelled"}
    assert [task.index for _, task in found] == list(range(-1, MANY))
    assert all(task.input is not None and task.input.value == str(task.index) for _, task in found), "inputs stay"
    assert len(whole) == MANY + 1
