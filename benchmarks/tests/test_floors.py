"""The hand-written code finds and stores what the store does; else it would be no floor."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import pytest_asyncio

import threadkeep
from threadkeep import Actor, Include, NewMemory
from threadkeep.clock import to_us
from threadkeep.registry import registry
from threadkeep.tokens import token
from threadkeep_bench import workload
from threadkeep_bench.floors import Floor, floor_for

pytestmark = pytest.mark.asyncio

_MESSAGE = {
    "thread_id": "thread-1",
    "role": "user",
    "type": "text",
    "content": {"a": 1},
    "metadata": {"k": 1},
}


@pytest_asyncio.fixture
async def store(url: str) -> AsyncGenerator[threadkeep.Store]:
    async with threadkeep.open(url) as store:
        await store.ensure_thread("resource-1", thread_id="thread-1", title="One", metadata={"topic": "a"})
        yield store


@pytest_asyncio.fixture
async def floor(store: threadkeep.Store, url: str) -> AsyncGenerator[Floor]:
    floor = await floor_for(registry().spec_for(url).name, url)
    assert floor is not None
    yield floor
    await floor.close()


def _rows(records: Sequence[msgspec.Struct]) -> list[dict[str, Any]]:
    return [msgspec.structs.asdict(record) for record in records]


async def test_it_reads_the_pages_that_the_store_reads(store: threadkeep.Store, floor: Floor) -> None:
    await store.save_messages(workload.messages("thread-1", "resource-1", 300))
    newest = await store.list_messages("thread-1", order="desc", per_page=20)
    filtered = await store.list_messages("thread-1", where={"priority": 3}, order="desc", per_page=20)
    first = await store.list_messages("thread-1", per_page=20)
    second = await store.list_messages("thread-1", per_page=20, cursor=first.next_cursor)
    third = await store.list_messages("thread-1", per_page=20, page=2)
    last = first.items[-1]

    assert await floor.newest("thread-1", 20) == _rows(newest.items)
    assert await floor.newest("thread-1", 20, token("priority", 3)) == _rows(filtered.items)
    place = (to_us(last.created_at), last.seq, last.id)
    assert await floor.after("thread-1", place, 20) == _rows(second.items)
    assert await floor.page("thread-1", 40, 20) == _rows(third.items)


async def test_it_reads_the_windows_that_the_store_reads(store: threadkeep.Store, floor: Floor) -> None:
    await store.save_messages(workload.messages("thread-1", "resource-1", 100))
    page = await store.list_messages("thread-1", per_page=None)
    ids = [page.items[number].id for number in (0, 50, 52, 99)]  # two of them overlap
    include = [Include(wanted, before=2, after=2) for wanted in ids]
    windows = await store.list_messages("thread-1", include=include, per_page=0)

    assert await floor.windows(ids, 2, 2) == _rows(windows.items)


async def test_it_lists_the_threads_that_the_store_lists(store: threadkeep.Store, floor: Floor) -> None:
    for number in range(30):
        metadata = workload.metadata(number)
        await store.create_thread(
            "resource-1", thread_id=f"t-{number}", title=f"T{number}", metadata=metadata
        )
    await store.create_thread("resource-2", metadata={"priority": 3})
    page = await store.list_threads(resource_id="resource-1", per_page=20)
    filtered = await store.list_threads(resource_id="resource-1", where={"priority": 3}, per_page=20)

    assert await floor.threads("resource-1", 20) == _rows(page.items)
    assert await floor.threads("resource-1", 20, token("priority", 3)) == _rows(filtered.items)


async def test_it_recalls_the_memories_that_the_store_recalls(store: threadkeep.Store, floor: Floor) -> None:
    ours, others = Actor("user", "u"), Actor("user", "v")
    await store.add_memories(ours, [f"Likes {'ZÜRICH' if n % 3 else 'tea'} {n}" for n in range(30)])
    await store.add_memories(ours, [NewMemory("Pinned Zürich", pinned=True)])
    await store.add_memories(Actor("shared"), ["Everybody likes Zürich"])
    await store.add_memories(others, ["Likes Zürich too"])
    recalled = await store.recall_memories(ours, "zürich", limit=10)

    rows = await floor.recall(("user", "u"), "zürich", 10)

    assert [(row["id"], row["content"], row["created_at"]) for row in rows] == [
        (memory.id, memory.content, memory.created_at) for memory in recalled
    ]


async def test_what_it_appends_is_read_and_found_by_the_store(store: threadkeep.Store, floor: Floor) -> None:
    before = await store.get_thread("thread-1")

    stored = await floor.append(_MESSAGE)

    found = await store.list_messages("thread-1", where={"k": 1}, with_total=True)
    by_resource = await store.list_messages(resource_id="resource-1", where={"k": 1})
    assert _rows(found.items) == [{**stored, "resource_id": "resource-1"}]
    assert by_resource.items == found.items
    thread = await store.get_thread("thread-1")
    assert before is not None
    assert thread is not None
    assert thread.message_count == 1
    assert thread.updated_at > before.updated_at


async def test_what_it_appends_together_is_read_in_order(store: threadkeep.Store, floor: Floor) -> None:
    messages = [{**_MESSAGE, "content": number, "metadata": {"k": number % 2}} for number in range(100)]

    await floor.append_many(messages)

    page = await store.list_messages("thread-1", per_page=None, with_total=True)
    odd = await store.list_messages("thread-1", where={"k": 1}, per_page=None)
    assert [message.content for message in page.items] == list(range(100))
    assert [message.content for message in odd.items] == list(range(1, 100, 2))
    assert page.total == 100


async def test_its_bulk_insert_stores_what_saving_does(store: threadkeep.Store, floor: Floor) -> None:
    messages = list(workload.messages("thread-1", "resource-1", 300))

    assert await floor.bulk(_rows(messages)) == 300

    page = await store.list_messages("thread-1", per_page=None, with_total=True)
    assert page.items == messages
    assert page.total == 300
    for key in workload.SHARES:
        where = {key: workload.value_of(key, 0)}
        found = await store.list_messages("thread-1", where=where, per_page=None)
        assert [m.id for m in found.items] == [m.id for m in messages if m.metadata[key] == where[key]]


async def test_its_merges_by_many_writers_lose_nothing(store: threadkeep.Store, floor: Floor) -> None:
    await store.update_resource("resource-1", working_memory='{"kept":1,"gone":{"a":1}}')
    before = await store.get_resource("resource-1")

    await asyncio.gather(*[floor.merge("resource-1", {"writers": {str(n): n}}) for n in range(8)])
    await floor.merge("resource-1", {"gone": {"a": None}})

    after = await store.get_resource("resource-1")
    assert before is not None
    assert after is not None
    assert json.loads(after.working_memory or "") == {
        "kept": 1,
        "gone": {},
        "writers": {str(n): n for n in range(8)},
    }
    assert after.revision == before.revision + 9
    assert after.updated_at >= before.updated_at + timedelta(microseconds=9)


async def test_its_clone_is_one_to_the_store(store: threadkeep.Store, floor: Floor) -> None:
    await store.save_messages(workload.messages("thread-1", "resource-1", 120))

    ids = await floor.clone("thread-1", "copy")

    source = await store.list_messages("thread-1", per_page=None)
    copy = await store.list_messages("copy", per_page=None, with_total=True)
    thread = await store.get_thread("copy")
    assert thread is not None
    assert (thread.title, thread.resource_id, store.is_clone(thread)) == ("Clone of One", "resource-1", True)
    assert copy.total == 120
    assert [(m.id, m.content, m.metadata, m.created_at) for m in copy.items] == [
        (ids[m.id], m.content, m.metadata, m.created_at) for m in source.items
    ]
    for key in workload.SHARES:
        where = {key: workload.value_of(key, 0)}
        original = await store.list_messages("thread-1", where=where, per_page=None)
        copied = await store.list_messages("copy", where=where, per_page=None)
        owned = await store.list_messages(resource_id="resource-1", where=where, per_page=None)
        assert [m.id for m in copied.items] == [ids[m.id] for m in original.items]
        assert len(owned.items) == 2 * len(original.items)


async def test_a_failed_write_leaves_nothing_and_the_next_one_works(
    store: threadkeep.Store, floor: Floor
) -> None:
    with pytest.raises(Exception, match=r"UNIQUE|duplicate"):
        await floor.bulk(_rows([*workload.messages("thread-1", "resource-1", 3)] * 2))

    await floor.append(_MESSAGE)
    page = await store.list_messages("thread-1", with_total=True)
    assert (len(page.items), page.total) == (1, 1)


async def test_only_backends_with_hand_written_code_have_a_floor() -> None:
    assert await floor_for("memory", "memory:") is None
