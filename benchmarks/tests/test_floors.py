"""The hand-written code finds and stores what the store does; else it would be no floor."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

import threadkeep
from threadkeep.clock import to_us
from threadkeep.tokens import token
from threadkeep_bench import workload
from threadkeep_bench.floors import floor_for
from threadkeep_bench.floors.libsql import LibsqlFloor

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncGenerator[threadkeep.Store]:
    async with threadkeep.open(f"libsql://{tmp_path}/floor.db") as store:
        await store.ensure_thread("resource-1", thread_id="thread-1")
        yield store


@pytest_asyncio.fixture
async def floor(store: threadkeep.Store, tmp_path: Path) -> AsyncGenerator[LibsqlFloor]:
    floor = LibsqlFloor(tmp_path / "floor.db")
    yield floor
    floor.close()


def _rows(messages: list[threadkeep.Message]) -> list[dict[str, Any]]:
    return [msgspec.structs.asdict(message) for message in messages]


async def test_it_reads_the_pages_that_the_store_reads(store: threadkeep.Store, floor: LibsqlFloor) -> None:
    await store.save_messages(workload.messages("thread-1", "resource-1", 300))
    newest = await store.list_messages("thread-1", order="desc", per_page=20)
    filtered = await store.list_messages("thread-1", where={"priority": 3}, order="desc", per_page=20)
    first = await store.list_messages("thread-1", per_page=20)
    second = await store.list_messages("thread-1", per_page=20, cursor=first.next_cursor)
    last = first.items[-1]

    assert floor.newest("thread-1", 20) == _rows(newest.items)
    assert floor.newest("thread-1", 20, token("priority", 3)) == _rows(filtered.items)
    assert floor.after("thread-1", (to_us(last.created_at), last.seq, last.id), 20) == _rows(second.items)


async def test_what_it_appends_is_read_and_found_by_the_store(
    store: threadkeep.Store, floor: LibsqlFloor
) -> None:
    before = await store.get_thread("thread-1")
    message = {
        "thread_id": "thread-1",
        "role": "user",
        "type": "text",
        "content": {"a": 1},
        "metadata": {"k": 1},
    }

    stored = await floor.hop(floor.append, message)

    found = await store.list_messages("thread-1", where={"k": 1}, with_total=True)
    by_resource = await store.list_messages(resource_id="resource-1", where={"k": 1})
    assert _rows(found.items) == [{**stored, "resource_id": "resource-1"}]
    assert by_resource.items == found.items
    thread = await store.get_thread("thread-1")
    assert before is not None
    assert thread is not None
    assert thread.message_count == 1
    assert thread.updated_at > before.updated_at


async def test_its_bulk_insert_stores_what_saving_does(store: threadkeep.Store, floor: LibsqlFloor) -> None:
    messages = list(workload.messages("thread-1", "resource-1", 300))

    assert floor.bulk(_rows(messages)) == 300

    page = await store.list_messages("thread-1", per_page=None, with_total=True)
    assert page.items == messages
    assert page.total == 300
    for key in workload.SHARES:
        where = {key: workload.value_of(key, 0)}
        found = await store.list_messages("thread-1", where=where, per_page=None)
        assert [m.id for m in found.items] == [m.id for m in messages if m.metadata[key] == where[key]]


async def test_a_failed_write_leaves_nothing_and_the_next_one_works(
    store: threadkeep.Store, floor: LibsqlFloor
) -> None:
    with pytest.raises(TypeError):
        floor.append({"thread_id": "none", "role": "user", "type": "text", "content": 1, "metadata": {}})

    floor.append({"thread_id": "thread-1", "role": "user", "type": "text", "content": 1, "metadata": {}})
    page = await store.list_messages("thread-1")
    assert len(page.items) == 1


async def test_only_backends_with_hand_written_code_have_a_floor(tmp_path: Path) -> None:
    async with threadkeep.open(f"sqlite://{tmp_path}/a.db?durability=relaxed"):
        floor = floor_for("libsql", f"sqlite://{tmp_path}/a.db?durability=relaxed")

    assert isinstance(floor, LibsqlFloor)
    floor.close()
    assert floor_for("memory", "memory:") is None
