"""Cursors: walks that are exact while others write, and what a cursor may be used with."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep import (
    Actor,
    InvalidCursorError,
    Message,
    MessageUpdate,
    NewMemory,
    Store,
    Thread,
    TimeRange,
)

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import NOON, add, at, filled_thread, ids, pages, tied_threads, walk_messages, walk_threads

__all__ = ["TestCursorBinding", "TestCursorWalk"]

SHARED = Actor("shared")


class TestCursorWalk(AdapterSuite):
    """Walks that are exact while others write."""

    @case("messages.cursor.walk", "5.1.walk")
    async def test_a_walk_gives_every_message_once_in_order(self, store: Store) -> None:
        """Cursor walks of every page size and order, over ties, give every message once."""
        names = await filled_thread(store, 23, tied=True)
        for size in (1, 2, 7, 22, 23, 24):
            assert await walk_messages(store, "thread-1", per_page=size) == names
            assert await walk_messages(store, "thread-1", per_page=size, order="desc") == names[::-1]

    @case("messages.cursor.walk_equal_seq", "5.1.walk", "4.5.total")
    async def test_a_walk_over_equal_time_and_seq_goes_by_id(self, store: Store) -> None:
        """Messages with equal created_at and seq (imports) come once each."""
        await store.create_thread("user-1", thread_id="t")
        names = sorted(f"é{i}" if i % 2 else f"\U00010000{i}" for i in range(9))
        await store.save_messages(
            [
                Message(
                    id=n, thread_id="t", resource_id="user-1", role="user", content=0, created_at=NOON, seq=5
                )
                for n in reversed(names)
            ]
        )

        assert await walk_messages(store, "t", per_page=2) == names
        assert await walk_messages(store, "t", per_page=2, order="desc") == names[::-1]

    @case("messages.cursor.walk_filtered", "5.1.walk", "5.4.first")
    async def test_a_filtered_walk_gives_every_match_once(self, store: Store) -> None:
        """Cursor walks with filter, dates, several threads and owner give every match once."""
        names = await filled_thread(store, 20)
        await filled_thread(store, 20, thread_id="thread-2", resource_id="user-2")
        dates = TimeRange(start=at(3), end=at(16), end_exclusive=True)

        found = await walk_messages(
            store, "thread-1", where={"even": True}, created=dates, per_page=3, order="desc"
        )
        assert found == names[4:16:2][::-1]
        both = await walk_messages(store, ["thread-1", "thread-2"], where={"even": True}, per_page=3)
        assert both[::2] == names[::2]
        assert len(set(both)) == 20
        assert (
            await walk_messages(store, resource_id="user-1", threads=["thread-1", "thread-2"], per_page=7)
            == names
        )

    @case("messages.cursor.while_inserting", "5.1.walk")
    async def test_a_walk_survives_inserts_before_and_after_its_place(self, store: Store) -> None:
        """While new and backdated messages arrive, every message that was there comes exactly once."""
        for order in ("asc", "desc"):
            thread = f"thread-{order}"
            names = await filled_thread(store, 12, thread_id=thread)
            found: list[str] = []
            async for page in pages(store.list_messages, thread, order=order, per_page=3):
                found += ids(page)
                if len(found) < 60:  # after that, nothing new lies ahead
                    await add(store, thread, f"{order}{len(found)}old", created_at=at(-100 - len(found)))
                    await add(store, thread, f"{order}{len(found)}new", created_at=at(100 + len(found)))
            assert len(found) == len(set(found))
            assert [name for name in found if name in names] == (names if order == "asc" else names[::-1])

    @case("messages.cursor.while_deleting", "5.1.walk")
    async def test_a_walk_survives_deletes_of_what_it_has_seen_and_not_seen(self, store: Store) -> None:
        """Deleting the very row a cursor points at, and rows ahead, neither repeats nor loses another."""
        names = await filled_thread(store, 12, tied=True)
        first = await store.list_messages("thread-1", per_page=4)
        await store.delete_messages([names[3], names[0], names[5]])

        second = await store.list_messages("thread-1", per_page=4, cursor=first.next_cursor)
        third = await store.list_messages("thread-1", per_page=4, cursor=second.next_cursor)

        assert (ids(second), ids(third)) == ([names[4], *names[6:9]], names[9:])

    @case("messages.cursor.while_updating", "5.1.walk")
    async def test_a_walk_survives_updates(self, store: Store) -> None:
        """Updates and upserts of tied messages between pages move nothing."""
        names = await filled_thread(store, 205, tied=True)
        found: list[str] = []
        async for page in pages(store.list_messages, "thread-1", per_page=100):
            found += ids(page)
            await store.update_messages(
                [MessageUpdate(names[150], content=len(found)), MessageUpdate(names[3], role="x")]
            )
            await add(store, "thread-1", names[101], names[0])

        assert found == names

    @case("messages.cursor.at_the_end", "5.1.more", "5.1.walk")
    async def test_a_page_that_was_last_has_no_cursor_until_more_arrives(self, store: Store) -> None:
        """A cursor taken while more existed gives what follows now, also when it has been deleted or has
        grown.
        """
        names = await filled_thread(store, 4)
        page = await store.list_messages("thread-1", per_page=2)
        await store.delete_messages(names[2:])

        after = await store.list_messages("thread-1", per_page=2, cursor=page.next_cursor)
        assert (after.items, after.has_more, after.next_cursor) == ([], False, None)
        await add(store, "thread-1", "new")
        assert ids(await store.list_messages("thread-1", per_page=2, cursor=page.next_cursor)) == ["new"]

    @case("messages.cursor.other_size", "5.1.bound")
    async def test_a_walk_may_change_its_page_size(self, store: Store) -> None:
        """per_page, totals and includes are no part of the query a cursor is bound to."""
        names = await filled_thread(store, 9)
        page = await store.list_messages("thread-1", per_page=2)

        after = await store.list_messages("thread-1", per_page=None, cursor=page.next_cursor)
        assert ids(after) == names[2:]
        assert (
            ids(await store.list_messages("thread-1", per_page=5, with_total=True, cursor=page.next_cursor))
            == names[2:7]
        )
        assert ids(await store.list_messages("thread-1", per_page=0, cursor=page.next_cursor)) == []

    @case("messages.cursor.hostile_ids", "5.1.walk", "4.1.compare")
    async def test_a_walk_over_any_ids_is_exact(self, store: Store) -> None:
        """Cursors carry ids of 255 characters of four bytes, quotes and line breaks."""
        await store.create_thread("\U0001f600" * 255, thread_id="\U0001f4a9" * 255)
        names = ["\U0001f600" * 254 + tail for tail in ("'", '"', "\\", "\n", "%", "\x01")]
        await add(store, "\U0001f4a9" * 255, *names, created_at=NOON)

        assert await walk_messages(store, "\U0001f4a9" * 255, per_page=1) == names
        assert await walk_threads(store, per_page=1) == ["\U0001f4a9" * 255]

    @case("messages.cursor.iterate", "3.iter", "5.1.walk")
    async def test_iterating_gives_every_message_once(self, store: Store) -> None:
        """iter_messages walks over all pages with the query's arguments."""
        names = await filled_thread(store, 11, tied=True)

        assert [m.id async for m in store.iter_messages("thread-1", per_page=2)] == names
        assert [m.id async for m in store.iter_messages("thread-1", per_page=3, order="desc")] == names[::-1]
        even = [
            m.id async for m in store.iter_messages(resource_id="user-1", where={"even": True}, per_page=1)
        ]
        assert even == names[::2]

    @case("threads.cursor.walk", "5.1.walk")
    async def test_a_walk_gives_every_thread_once_in_order(self, store: Store) -> None:
        """Cursor walks over tied threads, in both orders and directions, give every thread once."""
        names = await tied_threads(store, 13)
        for by in ("created_at", "updated_at"):
            for size in (1, 5, 13):
                walked = await walk_threads(store, order_by=by, order="asc", per_page=size)
                assert walked == names
                assert await walk_threads(store, order_by=by, per_page=size, where={"k": 1}) == names[::-1]

    @case("threads.cursor.while_touching", "5.1.walk", "4.5.touch")
    async def test_a_walk_by_change_is_exact_while_threads_are_touched(self, store: Store) -> None:
        """Untouched threads come exactly once; a touched one at most once for each updated_at it had."""
        for order in ("asc", "desc"):
            names = [f"{order}{index}" for index in range(12)]
            for index, name in enumerate(names):
                await store.save_thread(
                    Thread(id=name, resource_id=order, created_at=NOON, updated_at=at(index))
                )
            found: list[tuple[str, object]] = []
            touched = {names[1], names[7], names[10]}
            query: dict[str, Any] = {"resource_id": order, "order_by": "updated_at", "order": order}
            async for page in pages(store.list_threads, per_page=3, **query):
                found += [(thread.id, thread.updated_at) for thread in page.items]
                if len(found) < 15:
                    for name in sorted(touched):
                        await store.update_thread(name, title=str(len(found)))
            assert len(found) == len(set(found))
            seen = [name for name, _ in found if name not in touched]
            assert sorted(seen) == sorted(set(names) - touched)

    @case("threads.cursor.while_deleting", "5.1.walk")
    async def test_a_walk_over_threads_survives_inserts_and_deletes(self, store: Store) -> None:
        """Deleting the thread a cursor points at and creating tied ones neither repeats nor loses another."""
        names = await tied_threads(store, 9)
        first = await store.list_threads(order="asc", per_page=3)
        await store.delete_thread(names[2])
        await store.delete_thread(names[4])
        await store.create_thread("user-1", thread_id="t000a", created_at=NOON)

        rest = await walk_threads(store, order="asc", per_page=3, cursor=first.next_cursor)

        assert rest == [names[3], *names[5:]]

    @case("memories.cursor.walk", "5.1.walk", "3.memories")
    async def test_a_walk_over_memories_gives_each_once(self, store: Store) -> None:
        """list_memories walks newest first and by rising id over ties, with an exact total."""
        added = await store.add_memories(
            SHARED, [NewMemory(f"m{i}", id=9 - i, created_at=NOON) for i in range(8)]
        )
        expected = sorted(memory.id for memory in added)

        found: list[int] = []
        async for page in pages(store.list_memories, SHARED, per_page=3, with_total=True):
            assert page.total == 8
            found += [memory.id for memory in page.items]

        assert found == expected
        assert [memory.id for memory in (await store.list_memories(page=1, per_page=3)).items] == expected[
            3:6
        ]
        assert [memory.id async for memory in store.iter_memories(per_page=2)] == expected


class TestCursorBinding(AdapterSuite):
    """What a cursor may be used with."""

    @case("messages.cursor.bound_to_query", "5.1.bound", "5.1.damaged")
    async def test_a_cursor_of_another_query_is_refused(self, store: Store) -> None:
        """Another scope, owner, filter, date range or order than the cursor's is InvalidCursorError."""
        await filled_thread(store, 6)
        await filled_thread(store, 6, thread_id="thread-2")
        query: dict[str, Any] = {
            "threads": ["thread-1"],
            "resource_id": "user-1",
            "where": {"even": True},
            "created": TimeRange(end=at(50)),
            "order": "asc",
            "per_page": 1,
        }
        cursor = (await store.list_messages(**query)).next_cursor
        assert cursor is not None
        changes: list[dict[str, Any]] = [
            {"threads": ["thread-2"]},
            {"threads": ["thread-1", "thread-2"]},
            {"threads": None},
            {"resource_id": None},
            {"resource_id": "user-2"},
            {"where": None},
            {"where": {"even": False}},
            {"where": {"even": True, "index": 2}},
            {"where": {"even": 1}},
            {"created": None},
            {"created": TimeRange(end=at(50), end_exclusive=True)},
            {"created": TimeRange(start=at(0), end=at(50))},
            {"order": "desc"},
        ]
        for change in changes:
            with pytest.raises(InvalidCursorError):
                await store.list_messages(**{**query, **change}, cursor=cursor)
        assert len((await store.list_messages(**query, cursor=cursor)).items) == 1

    @case("threads.cursor.bound_to_query", "5.1.bound", "5.1.damaged")
    async def test_a_cursor_of_another_list_of_threads_is_refused(self, store: Store) -> None:
        """Another owner, filter or order than the cursor's, or another list, is InvalidCursorError."""
        await tied_threads(store, 5)
        await filled_thread(store, 5)
        query: dict[str, Any] = {
            "resource_id": "user-1",
            "where": {"k": 1},
            "order_by": "created_at",
            "per_page": 1,
        }
        cursor = (await store.list_threads(**query)).next_cursor
        assert cursor is not None
        changes: list[dict[str, Any]] = [
            {"resource_id": None},
            {"resource_id": "user-2"},
            {"where": None},
            {"where": {"k": "1"}},
            {"order_by": "updated_at"},
            {"order": "asc"},
        ]
        for change in changes:
            with pytest.raises(InvalidCursorError):
                await store.list_threads(**{**query, **change}, cursor=cursor)
        with pytest.raises(InvalidCursorError):
            await store.list_messages("thread-1", cursor=cursor)
        with pytest.raises(InvalidCursorError):
            await store.list_resources(cursor=cursor)
        with pytest.raises(InvalidCursorError):
            await store.list_memories(cursor=cursor)

    @case("messages.cursor.damaged", "5.1.damaged")
    async def test_a_damaged_cursor_is_refused(self, store: Store) -> None:
        """Every cursor with one character changed, cut short or grown, and everything else, is
        InvalidCursorError.
        """
        await filled_thread(store, 3)
        cursor = (await store.list_messages("thread-1", per_page=1)).next_cursor
        assert cursor is not None
        damaged: list[Any] = [
            "",
            "x",
            "é",
            cursor[:-1],
            cursor + "A",
            cursor + "=",
            " " + cursor,
            cursor.swapcase(),
        ]
        damaged += [
            cursor[:i] + ("A" if cursor[i] != "A" else "B") + cursor[i + 1 :] for i in range(len(cursor))
        ]
        damaged += [7, b"x", [cursor], {"$ne": ""}, "A" * 100_000]
        for wrong in damaged:
            with pytest.raises(InvalidCursorError):
                await store.list_messages("thread-1", per_page=1, cursor=wrong)

    @case("messages.cursor.with_page", "5.1.damaged")
    async def test_cursor_and_page_exclude_each_other(self, store: Store) -> None:
        """A cursor together with a page is InvalidCursorError, in every list."""
        await filled_thread(store, 3)
        await filled_thread(store, 3, thread_id="thread-2")
        messages = (await store.list_messages("thread-1", per_page=1)).next_cursor
        threads = (await store.list_threads(per_page=1)).next_cursor
        assert messages is not None
        assert threads is not None

        with pytest.raises(InvalidCursorError):
            await store.list_messages("thread-1", per_page=1, page=1, cursor=messages)
        with pytest.raises(InvalidCursorError):
            await store.list_threads(per_page=1, page=1, cursor=threads)

    @case("messages.cursor.same_query_in_other_words", "5.1.bound")
    async def test_a_cursor_goes_with_the_same_query_written_otherwise(self, store: Store) -> None:
        """The order in which threads are listed, and a lone id for a list of one, are the same query."""
        await filled_thread(store, 4)
        await filled_thread(store, 4, thread_id="thread-2")
        one = (await store.list_messages("thread-1", per_page=1)).next_cursor
        two = (await store.list_messages(["thread-1", "thread-2"], per_page=1)).next_cursor

        assert len((await store.list_messages(["thread-1"], per_page=1, cursor=one)).items) == 1
        assert len((await store.list_messages(["thread-2", "thread-1"], per_page=1, cursor=two)).items) == 1

    @case("messages.cursor.scope_is_applied_again", "5.1.scope", "5.3.reads")
    async def test_a_cursor_gives_no_access_to_what_left_the_scope(self, store: Store) -> None:
        """After the thread went to another resource, a cursor of the old owner's query finds nothing."""
        await filled_thread(store, 5)
        page = await store.list_messages("thread-1", resource_id="user-1", per_page=2)
        await store.transfer_thread("thread-1", "user-2")

        after = await store.list_messages(
            "thread-1", resource_id="user-1", per_page=2, cursor=page.next_cursor
        )

        assert (after.items, after.has_more) == ([], False)

    @case("messages.cursor.other_store", "5.1.bound", "4.shared")
    async def test_a_cursor_works_in_another_store_on_the_database(self, database: Database) -> None:
        """A cursor is no state of a store: another process, or this one after a restart, goes on with it."""
        first, second = await database.open(), await database.open()
        names = await filled_thread(first, 5)
        page = await first.list_messages("thread-1", per_page=2)
        await first.close()

        assert ids(await second.list_messages("thread-1", per_page=3, cursor=page.next_cursor)) == names[2:]
