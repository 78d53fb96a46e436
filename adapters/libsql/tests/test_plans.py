"""What a query costs: index ranges in order, by the engine's own plan, and work that does not grow."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

import threadkeep
from threadkeep import (
    Include,
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
    """Whether somebody has run ``ANALYZE``, after which the engine would choose other plans."""
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
