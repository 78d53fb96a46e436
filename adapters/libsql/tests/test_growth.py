"""Work that does not grow: statements and engine steps of a call, in a small and in a large thread."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal

import pytest
import pytest_asyncio

import threadkeep
from threadkeep import Include, MessageUpdate, NewMessage, Store, TimeRange, one_of
from threadkeep_libsql import adapter as adapter_module
from threadkeep_libsql._driver import Connection, Value

START = datetime(2024, 1, 1, tzinfo=UTC)


class Counted(Connection):
    """A connection that counts its statements and the engine's steps, instructions of its machine."""

    count: ClassVar[Counter[str]] = Counter()

    def __init__(self, path: str, *, durability: Literal["full", "relaxed"], busy_timeout_s: float) -> None:
        super().__init__(path, durability=durability, busy_timeout_s=busy_timeout_s)
        self._raw.set_progress_handler(self._step, 1)

    def _step(self) -> int:
        self.count["steps"] += 1
        return 0

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        if not sql.startswith("PRAGMA"):  # a connection's first words, whenever the pool opens one more
            self.count["statements"] += 1
        return super().query(sql, parameters)

    def run(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        self.count["statements"] += 1
        return super().run(sql, parameters)

    def run_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self.count["statements"] += 1
        super().run_many(sql, rows)


SIZES = {"small": 1_000, "large": 50_000}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["fresh", "analyzed"])
async def two_sizes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Store]:
    """A small and a large thread, each alone in its resource; in both the oldest 40 messages are rare.

    Analyzed when it was small, the engine would believe that it still is, and scan.
    """
    path = tmp_path_factory.mktemp("growth") / "a.db"
    url = f"libsql://{path}?durability=relaxed"
    if request.param == "analyzed":
        async with threadkeep.open(url) as store:
            await store.create_thread("first", thread_id="first", metadata={"n": 1})
            await store.save_messages([NewMessage("first", "user", None, metadata={"n": 1})])
        with closing(sqlite3.connect(path)) as db:
            db.execute("ANALYZE")
    async with threadkeep.open(url) as store:
        for name, size in SIZES.items():
            await store.create_thread(name, thread_id=name)
            await store.save_messages(
                [
                    NewMessage(
                        name,
                        "user",
                        None,
                        id=f"{name}/{n}",
                        created_at=START + timedelta(seconds=n),
                        metadata={"rare": n < 40, "n": n % 3},
                    )
                    for n in range(size)
                ]
            )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter_module, "Connection", Counted)
        async with threadkeep.open(url) as store:
            yield store


Call = Callable[[Store, str], Awaitable[object]]


async def page_by_cursor(store: Store, name: str) -> object:
    first = await store.list_messages(name, order="desc", per_page=500)
    Counted.count.clear()
    return await store.list_messages(name, order="desc", per_page=20, cursor=first.next_cursor)


def page(**query: Any) -> Call:
    """The newest 20 of a thread that match."""
    return lambda store, name: store.list_messages(name, order="desc", per_page=20, **query)


def page_of_resource(**query: Any) -> Call:
    """The newest 20 of a resource that match."""
    return lambda store, name: store.list_messages(resource_id=name, order="desc", per_page=20, **query)


READS: dict[str, Call] = {
    "newest page": page(),
    "oldest page": lambda store, name: store.list_messages(name, per_page=20),
    "a page by cursor": page_by_cursor,
    "newest page of a resource": page_of_resource(),
    "a total": page(with_total=True),
    "a resource's total": page_of_resource(with_total=True),
    "rare matches, all of them old": page(where={"rare": True}),
    "common matches": page(where={"rare": False}),
    "rare matches in a resource": page_of_resource(where={"rare": True}),
    "one of several values": page(where={"n": one_of(0, 1)}),
    "two equalities, one rare": page(where={"n": 1, "rare": True}),
    "within dates": page(created=TimeRange(start=START, end=START + timedelta(minutes=10))),
    "a window": lambda store, name: store.list_messages(
        name, include=[Include(f"{name}/500", before=5, after=5)], per_page=20
    ),
    "by id": lambda store, name: store.get_messages([f"{name}/1", f"{name}/2"]),
    "the thread": lambda store, name: store.get_thread(name),
    "threads of a resource": lambda store, name: store.list_threads(resource_id=name),
}


async def small_thread(store: Store, name: str) -> str:
    """A thread of five messages beside the other one of its resource."""
    thread = await store.create_thread(name, metadata={"n": 1})
    await store.save_messages([NewMessage(thread.id, "user", n, metadata={"n": n}) for n in range(5)])
    Counted.count.clear()
    return thread.id


async def delete_a_small_thread(store: Store, name: str) -> None:
    await store.delete_thread(await small_thread(store, name))


async def clear_a_small_thread(store: Store, name: str) -> None:
    await store.clear_thread(await small_thread(store, name))


async def give_a_small_thread_away(store: Store, name: str) -> None:
    await store.transfer_thread(await small_thread(store, name), f"not {name}")


WRITES: dict[str, Call] = {
    "append": lambda store, name: store.save_messages([NewMessage(name, "user", "x", metadata={"n": 1})]),
    "replace": lambda store, name: store.save_messages(
        [NewMessage(name, "user", "y", id=f"{name}/50", metadata={"rare": True, "n": 7})]
    ),
    "update": lambda store, name: store.update_messages([MessageUpdate(f"{name}/60", metadata={"n": 8})]),
    "delete": lambda store, name: store.delete_messages([f"{name}/70"]),
    "update the thread": lambda store, name: store.update_thread(name, title="x", metadata={"a": 1}),
    "copy five": lambda store, name: store.clone_thread(name, message_limit=5, to_resource_id="other"),
    "delete a small thread": delete_a_small_thread,
    "clear a small thread": clear_a_small_thread,
    "give a small thread away": give_a_small_thread_away,
}


async def cost(store: Store, call: Call, name: str) -> dict[str, int]:
    Counted.count.clear()
    await call(store, name)
    return dict(Counted.count)


@pytest.mark.asyncio(loop_scope="module")
class TestGrowth:
    @pytest.mark.parametrize("call", READS.values(), ids=READS)
    async def test_a_read_costs_the_same_in_fifty_times_as_many_messages(
        self, two_sizes: Store, call: Call
    ) -> None:
        small, large = [await cost(two_sizes, call, name) for name in SIZES]

        assert large["statements"] == small["statements"] <= 8
        assert large["steps"] == pytest.approx(small["steps"], rel=0.03)

    @pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
    async def test_a_write_costs_the_same_in_fifty_times_as_many_messages(
        self, two_sizes: Store, call: Call
    ) -> None:
        for name in SIZES:
            await cost(two_sizes, call, name)  # the first of each kind may make a table or a resource
        small, large = [await cost(two_sizes, call, name) for name in SIZES]

        assert large["statements"] == small["statements"] <= 15
        assert large["steps"] == pytest.approx(small["steps"], rel=0.03)

    async def test_an_offset_skips_on_the_index_without_looking_at_messages(self, two_sizes: Store) -> None:
        near = await cost(two_sizes, page(page=1), "large")
        far = await cost(two_sizes, page(page=1001), "large")

        assert far["statements"] == near["statements"]
        assert (
            far["steps"] - near["steps"]
        ) / 20_000 <= 12  # steps for a skipped message; a message of a page takes 30
