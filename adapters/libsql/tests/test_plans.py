"""What a query costs: index ranges in order, by the engine's own plan, and work that does not grow."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import pytest_asyncio

import threadkeep
from threadkeep import (
    Include,
    MessageUpdate,
    NewMessage,
    Store,
    TimeRange,
    exists,
    gte,
    lt,
    missing,
    not_equal,
    one_of,
)
from threadkeep_libsql import adapter as adapter_module
from threadkeep_libsql._driver import Connection, Value

START = datetime(2024, 1, 1, tzinfo=UTC)
HOUR = TimeRange(start=START + timedelta(seconds=30), end=START + timedelta(hours=1))

Shape = dict[str, Any]

POSITIONS = (
    "SEARCH p USING PRIMARY KEY "
    "(scope=? AND token=? AND (created_at,seq,id)>(?,?,?) AND (created_at,seq,id)<(?,?,?))"
)
THREAD_POSITIONS = (
    "SEARCH tp USING PRIMARY KEY (scope=? AND token=? AND (created_at,id)>(?,?) AND (created_at,id)<(?,?))"
)

MESSAGE_SHAPES: dict[str, Shape] = {
    "newest page": {"threads": "t1", "order": "desc"},
    "oldest page": {"threads": "t1"},
    "all of a thread": {"threads": "t1", "per_page": None},
    "of a thread, checking its owner": {"threads": "t1", "resource_id": "r1"},
    "of a resource": {"resource_id": "r1", "order": "desc"},
    "of several threads": {"threads": ["t1", "t2", "t3"], "order": "desc"},
    "within dates": {"threads": "t1", "created": HOUR},
    "within dates, newest first": {"threads": "t1", "created": HOUR, "order": "desc"},
    "one equality in a thread": {"threads": "t1", "where": {"kind": "a"}},
    "one equality in a thread, newest first": {"threads": "t1", "where": {"kind": "a"}, "order": "desc"},
    "one equality in a resource": {"resource_id": "r1", "where": {"kind": "a"}, "order": "desc"},
    "one equality in several threads": {"threads": ["t1", "t2"], "where": {"kind": "a"}},
    "one equality that nothing matches": {"threads": "t1", "where": {"kind": "none of them"}},
    "one equality with a null": {"threads": "t1", "where": {"empty": None}},
    "one equality within dates": {"threads": "t1", "where": {"kind": "a"}, "created": HOUR, "order": "desc"},
    "one of several values": {"threads": "t1", "where": {"kind": one_of("a", "b")}, "order": "desc"},
    "several equalities": {"threads": "t1", "where": {"kind": "a", "even": True}},
    "an equality and a range": {"threads": "t1", "where": {"kind": "a", "n": gte(5)}},
    "an absent key, walking the order": {"threads": "t1", "where": {"nothing": missing()}},
    "an inequality, walking the order": {"threads": "t1", "where": {"kind": not_equal("a")}, "order": "desc"},
    "an offset page": {"threads": "t1", "page": 3, "per_page": 5, "order": "desc"},
    "an offset page, filtered": {"threads": "t1", "page": 2, "per_page": 5, "where": {"kind": "a"}},
    "a total": {"threads": "t1", "with_total": True},
    "windows": {"threads": "t1", "include": [Include("t1/20", before=3, after=3)], "per_page": 0},
}

THREAD_SHAPES: dict[str, Shape] = {
    "by creation": {},
    "by creation, oldest first": {"order": "asc"},
    "by update": {"order_by": "updated_at"},
    "by update, oldest first": {"order_by": "updated_at", "order": "asc"},
    "of a resource by creation": {"resource_id": "r1"},
    "of a resource by update": {"resource_id": "r1", "order_by": "updated_at"},
    "one equality": {"where": {"kind": "a"}},
    "one equality, oldest first": {"where": {"kind": "a"}, "order": "asc"},
    "one equality in a resource": {"resource_id": "r1", "where": {"kind": "a"}},
    "one of several values in a resource": {"resource_id": "r1", "where": {"kind": one_of("a", "b")}},
    "an offset page": {"page": 1, "per_page": 1},
}


async def fill(store: Store) -> None:
    """Three threads of 60 messages each, one a second, of two resources."""
    for n in (1, 2, 3):
        await store.create_thread(f"r{(n + 1) // 2}", thread_id=f"t{n}", metadata={"kind": "abc"[n - 1]})
        await store.save_messages(messages(f"t{n}", 60))


def messages(thread: str, count: int) -> list[NewMessage]:
    return [
        NewMessage(
            thread,
            "user",
            f"message {n}",
            id=f"{thread}/{n}",
            created_at=START + timedelta(seconds=n),
            metadata={"kind": "abc"[n % 3], "even": n % 2 == 0, "n": n, "empty": None},
        )
        for n in range(count)
    ]


@pytest.fixture(params=["fresh", "analyzed"])
def statistics(request: pytest.FixtureRequest) -> str:
    """Whether somebody has run ``ANALYZE``, which lets the engine choose other plans."""
    return request.param


@pytest_asyncio.fixture
async def store(tmp_path: Path, statistics: str) -> AsyncIterator[Store]:
    url = f"libsql://{tmp_path}/a.db"
    async with threadkeep.open(url) as opened:
        await fill(opened)
    if statistics == "analyzed":
        with closing(sqlite3.connect(tmp_path / "a.db")) as db:
            db.execute("ANALYZE")
    async with threadkeep.open(url) as opened:
        yield opened


def assert_only_ranges(plan: Sequence[str]) -> None:
    """Assert that nothing is sorted, and nothing scanned but lists of parameters and the few indexed keys."""
    assert [line for line in plan if "TEMP B-TREE" in line] == []
    scanned = {match[1] for line in plan if (match := re.search(r"\bSCAN (\w+)", line))}
    assert scanned <= {"wanted", "json_each", "threadkeep_indexed_key"}


@pytest.mark.asyncio
class TestPlans:
    @pytest.mark.parametrize("shape", MESSAGE_SHAPES.values(), ids=MESSAGE_SHAPES)
    async def test_messages_are_index_ranges_in_order(self, store: Store, shape: Shape) -> None:
        found = await store.explain_messages(**shape)

        assert_only_ranges(found.plan)
        assert shape.get("per_page") == 0 or POSITIONS in found.plan
        assert (found.order, found.limit) == ("native", "native")
        assert found.filter == ("native" if "where" in shape else None)
        assert found.rows_examined is None

    @pytest.mark.parametrize("order", ["asc", "desc"])
    @pytest.mark.parametrize(
        "scope",
        [
            {"threads": "t1"},
            {"resource_id": "r1"},
            {"threads": "t1", "where": {"kind": "a"}},
            {"threads": ["t1", "t3"]},
        ],
        ids=["thread", "resource", "filtered", "several threads"],
    )
    async def test_a_cursor_bounds_the_same_range(
        self, store: Store, scope: Shape, order: Literal["asc", "desc"]
    ) -> None:
        first = await store.list_messages(**scope, order=order, per_page=5)

        found = await store.explain_messages(**scope, order=order, per_page=5, cursor=first.next_cursor)

        assert_only_ranges(found.plan)
        assert POSITIONS in found.plan

    @pytest.mark.parametrize("shape", THREAD_SHAPES.values(), ids=THREAD_SHAPES)
    async def test_threads_are_index_ranges_in_order(self, store: Store, shape: Shape) -> None:
        found = await store.explain_threads(**shape)

        assert_only_ranges(found.plan)
        order_by = shape.get("order_by", "created_at")
        owner = "resource_key=? AND " if "resource_id" in shape else ""
        bounds = f"({order_by},id)>(?,?) AND ({order_by},id)<(?,?)"
        if "where" in shape:
            assert THREAD_POSITIONS in found.plan
            assert "threadkeep_thread_position" in found.indexes
        else:
            assert any(line.endswith(f"({owner}{bounds})") for line in found.plan)

    async def test_a_cursor_bounds_the_range_of_threads(self, store: Store) -> None:
        shapes: list[Shape] = [{}, {"order_by": "updated_at"}, {"where": {"kind": one_of("a", "b")}}]
        for shape in shapes:
            first = await store.list_threads(**shape, per_page=1)

            assert_only_ranges((await store.explain_threads(**shape, cursor=first.next_cursor)).plan)

    async def test_the_index_is_named(self, store: Store) -> None:
        for shape in MESSAGE_SHAPES.values():
            if shape.get("per_page") != 0:
                assert "threadkeep_position" in (await store.explain_messages(**shape)).indexes

    @pytest.mark.parametrize("where", [{"n": gte(30)}, {"n": exists()}, {"n": (gte(10), lt(20))}])
    async def test_a_range_of_values_reads_its_matches_only_and_sorts_them(
        self, store: Store, where: Shape
    ) -> None:
        found = await store.explain_messages("t1", where=where)

        searches = [line for line in found.plan if line.startswith("SEARCH p ")]
        assert len(searches) == 1
        assert re.search(r"\(scope=\? AND token>\? AND token<\?\)", searches[0])


FILTERS: list[Shape] = [
    {"kind": "a"},
    {"even": True},
    {"kind": "b", "even": False},
    {"n": one_of(1, 2, 3, 40)},
    {"n": (gte(10), lt(20)), "kind": "c"},
    {"empty": None, "kind": not_equal("c")},
    {"kind": exists(), "nothing": missing()},
]


@pytest.mark.asyncio
class TestNarrowIndexes:
    @pytest.mark.parametrize("choice", ["none", "kind,n", "even"])
    async def test_answers_do_not_depend_on_what_is_indexed(self, tmp_path: Path, choice: str) -> None:
        async with (
            threadkeep.open(f"libsql://{tmp_path}/all.db") as whole,
            threadkeep.open(f"libsql://{tmp_path}/narrow.db?metadata_index={choice}") as narrow,
        ):
            for store in (whole, narrow):
                await fill(store)
            scopes: list[Shape] = [{"threads": "t1"}, {"resource_id": "r1"}]
            for where in FILTERS:
                for scope in scopes:
                    answers = [
                        await store.list_messages(**scope, where=where, per_page=7, with_total=True)
                        for store in (whole, narrow)
                    ]
                    assert [item.id for item in answers[0].items] == [item.id for item in answers[1].items]
                    assert answers[0].total == answers[1].total
                threads = [await store.list_threads(where=where) for store in (whole, narrow)]
                assert [item.id for item in threads[0].items] == [item.id for item in threads[1].items]

    async def test_without_an_index_a_filter_walks_the_order_and_checks_each_message(
        self, tmp_path: Path
    ) -> None:
        async with threadkeep.open(f"libsql://{tmp_path}/a.db?metadata_index=none") as store:
            await fill(store)
            found = await store.explain_messages("t1", where={"kind": "a"}, order="desc")
            threads = await store.explain_threads(where={"kind": "a"})

        assert_only_ranges(found.plan)
        assert POSITIONS in found.plan
        assert threads.indexes == ["threadkeep_thread_created"]

    async def test_an_indexed_key_leads_and_another_is_checked(self, tmp_path: Path) -> None:
        async with threadkeep.open(f"libsql://{tmp_path}/a.db?metadata_index=n") as store:
            await fill(store)
            found = await store.explain_messages("t1", where={"even": True, "n": gte(50)})

        assert [line for line in found.plan if line.startswith("SEARCH p ")] == [
            "SEARCH p USING PRIMARY KEY (scope=? AND token>? AND token<?)"
        ]


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two_sizes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Store]:
    """A small and a large thread, each alone in its resource; in both the oldest 40 messages are rare."""
    url = f"libsql://{tmp_path_factory.mktemp('growth')}/a.db?durability=relaxed"
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


def page(**query: Any) -> Call:  # noqa: ANN401  (whatever list_messages takes)
    """The newest 20 of a thread that match."""
    return lambda store, name: store.list_messages(name, order="desc", per_page=20, **query)


def page_of_resource(**query: Any) -> Call:  # noqa: ANN401  (whatever list_messages takes)
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
