"""Pages, totals and cursors, of messages and of threads."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep import (
    Actor,
    InvalidArgumentError,
    InvalidCursorError,
    Message,
    MessageUpdate,
    NewMemory,
    Store,
    Thread,
    TimeRange,
)
from threadkeep.models import Order

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import NOON, add, at, filled_thread, ids, pages, walk_messages, walk_threads

__all__ = ["TestCursorBinding", "TestCursorWalk", "TestMessagePages", "TestThreadPages"]

HUGE = 2**63
SHARED = Actor("shared")


async def tied_threads(store: Store, count: int) -> list[str]:
    """So many threads of one resource at one time, and their ids in order."""
    names = [f"t{index:03}" for index in range(count)]
    for name in reversed(names):
        await store.create_thread("user-1", thread_id=name, metadata={"k": 1}, created_at=NOON)
    return names


class TestMessagePages(AdapterSuite):
    """page, per_page, has_more and total."""

    @case("messages.page.counts_from_zero", "5.1.page")
    async def test_pages_follow_each_other_from_zero(self, store: Store) -> None:
        """Pages 0, 1, 2 of one size give every message once, in order, in both directions."""
        names = await filled_thread(store, 10)
        both: dict[Order, list[str]] = {"asc": names, "desc": names[::-1]}
        for order, expected in both.items():
            pages = [await store.list_messages("thread-1", order=order, page=n, per_page=4) for n in range(3)]
            assert [ids(page) for page in pages] == [expected[:4], expected[4:8], expected[8:]]
            assert [(page.page, page.per_page) for page in pages] == [(0, 4), (1, 4), (2, 4)]

    @case("messages.page.ties", "5.1.page", "4.5.total")
    async def test_tied_messages_are_on_one_page_only(self, store: Store) -> None:
        """205 messages of one time, in pages of 100, come once each."""
        names = await filled_thread(store, 205, tied=True)

        found = [ids(await store.list_messages("thread-1", page=number, per_page=100)) for number in range(3)]

        assert [name for page in found for name in page] == names

    @case("messages.page.default_size", "5.1.page")
    async def test_a_page_has_forty_messages_unless_told_otherwise(self, store: Store) -> None:
        """per_page is 40 by default, oldest first."""
        names = await filled_thread(store, 41)

        page = await store.list_messages("thread-1")

        assert (ids(page), page.per_page, page.has_more) == (names[:40], 40, True)

    @case("messages.page.all", "5.1.page")
    async def test_a_size_of_none_is_all(self, store: Store) -> None:
        """per_page=None gives every message, without more and without cursor."""
        names = await filled_thread(store, 150)

        page = await store.list_messages("thread-1", per_page=None, with_total=True)

        assert (ids(page), page.has_more, page.next_cursor, page.total) == (names, False, None, 150)
        assert page.per_page is None

    @case("messages.page.all_needs_page_zero", "5.1.page")
    async def test_all_has_no_second_page(self, store: Store) -> None:
        """per_page=None with a page other than 0 is an error."""
        await filled_thread(store, 3)

        with pytest.raises(InvalidArgumentError):
            await store.list_messages("thread-1", per_page=None, page=1)

    @case("messages.page.zero", "5.1.zero")
    async def test_a_size_of_zero_is_nothing(self, store: Store) -> None:
        """per_page=0 gives no items, no total even where asked, and has_more False."""
        await filled_thread(store, 3)

        for number in (0, 5):
            page = await store.list_messages("thread-1", page=number, per_page=0, with_total=True)
            assert (page.items, page.total, page.has_more, page.next_cursor) == ([], None, False, None)
            assert page.per_page == 0

    @case("messages.page.invalid", "5.1.invalid")
    async def test_sizes_and_pages_that_are_no_counts_are_errors(self, store: Store) -> None:
        """Negative, fractional, bool, text and overflowing page and per_page are errors."""
        await filled_thread(store, 3)
        wrong: list[Any] = [-1, 1.5, 1.0, True, False, "1", HUGE, -HUGE, float("nan")]
        for value in wrong:
            with pytest.raises(InvalidArgumentError):
                await store.list_messages("thread-1", per_page=value)
            with pytest.raises(InvalidArgumentError):
                await store.list_messages("thread-1", page=value)
        with pytest.raises(InvalidArgumentError):
            await store.list_messages("thread-1", page=None)  # pyright: ignore[reportArgumentType]  (on purpose)
        with pytest.raises(InvalidArgumentError):
            await store.list_messages("thread-1", page=2**40, per_page=2**40)

    @case("messages.page.largest", "5.1.invalid", "5.1.end")
    async def test_the_largest_legal_page_is_empty(self, store: Store) -> None:
        """Huge pages and sizes that fit are no error: past the end there is nothing."""
        names = await filled_thread(store, 3)

        assert ids(await store.list_messages("thread-1", per_page=2**62)) == names
        assert ids(await store.list_messages("thread-1", page=2**62 - 1, per_page=1)) == []

    @case("messages.page.past_the_end", "5.1.end")
    async def test_past_the_end_there_is_nothing_but_the_total(self, store: Store) -> None:
        """A page past the end is empty, without more; the total is real if asked, else None."""
        await filled_thread(store, 5)

        page = await store.list_messages("thread-1", page=3, per_page=2, with_total=True)
        assert (page.items, page.has_more, page.next_cursor, page.total) == ([], False, None, 5)
        page = await store.list_messages(
            "thread-1", page=3, per_page=2, where={"even": True}, with_total=True
        )
        assert (page.items, page.total) == ([], 3)
        assert (await store.list_messages("thread-1", page=3, per_page=2)).total is None

    @case("messages.page.has_more", "5.1.more")
    async def test_more_is_exact_without_a_total(self, store: Store) -> None:
        """has_more is True exactly when a match follows, at every size; so is next_cursor."""
        await filled_thread(store, 6)
        for where, count in ((None, 6), ({"even": True}, 3)):
            for size in range(1, 8):
                for number in range(3):
                    page = await store.list_messages("thread-1", where=where, page=number, per_page=size)
                    assert page.has_more is (count > (number + 1) * size)
                    assert (page.next_cursor is not None) is page.has_more
                    assert page.total is None

    @case("messages.page.no_total_unless_asked", "5.1.end")
    async def test_the_total_is_counted_only_on_request(self, store: Store) -> None:
        """Without with_total the total is None, on every page."""
        await filled_thread(store, 3)

        assert (await store.list_messages("thread-1")).total is None
        assert (await store.list_messages("thread-1", with_total=True)).total == 3

    @case("messages.page.total_filtered", "5.1.total", "5.4.first")
    async def test_the_total_counts_the_matches(self, store: Store) -> None:
        """The total with a filter is the number of matches, also where they leave the last page short."""
        names = await filled_thread(store, 11)

        page = await store.list_messages(
            "thread-1", where={"even": True}, page=1, per_page=4, with_total=True
        )

        assert (ids(page), page.total, page.has_more) == (names[8::2], 6, False)

    @case("messages.page.total_dates", "5.1.total", "5.2.dates")
    async def test_the_total_counts_within_the_dates(self, store: Store) -> None:
        """The total with dates, and with dates and a filter, counts what lies within."""
        await filled_thread(store, 10)
        dates = TimeRange(start=at(2), end=at(7))

        page = await store.list_messages("thread-1", created=dates, per_page=2, with_total=True)
        assert (page.total, page.has_more) == (6, True)
        page = await store.list_messages(
            "thread-1", created=dates, where={"even": True}, per_page=2, with_total=True
        )
        assert (page.total, page.has_more) == (3, True)

    @case("messages.page.total_several_threads", "5.1.total")
    async def test_the_total_adds_up_over_threads(self, store: Store) -> None:
        """Several threads, one of them unknown and one given twice: total, order and has_more are those of
        the union.
        """
        first = await filled_thread(store, 5)
        second = await filled_thread(store, 4, thread_id="thread-2")
        await filled_thread(store, 3, thread_id="thread-3")
        names = ["thread-1", "unknown", "thread-2", "thread-1"]

        page = await store.list_messages(names, per_page=6, with_total=True)
        assert (page.total, page.has_more) == (9, True)
        assert ids(page) == [first[0], second[0], first[1], second[1], first[2], second[2]]
        page = await store.list_messages(names, where={"even": True}, page=1, per_page=3, with_total=True)
        assert (page.total, page.has_more, len(page.items)) == (5, False, 2)

    @case("messages.page.total_with_cursor", "5.1.total")
    async def test_the_total_is_the_same_on_every_page_of_a_walk(self, store: Store) -> None:
        """With a cursor the total is still that of the whole query."""
        await filled_thread(store, 7)
        query: dict[str, Any] = {"where": {"even": True}, "per_page": 2, "with_total": True}
        totals = [page.total async for page in pages(store.list_messages, "thread-1", **query)]

        assert totals == [4, 4]

    @case("messages.page.total_after_writes", "5.1.total", "3.get_thread")
    async def test_the_unfiltered_total_follows_every_kind_of_write(self, store: Store) -> None:
        """After saves, upserts, moves, deletes, clones and clears the total is what is there, and so is
        message_count.
        """
        await filled_thread(store, 6)
        await store.create_thread("user-1", thread_id="thread-2")

        async def both() -> list[int | None]:
            found: list[int | None] = []
            for name in ("thread-1", "thread-2"):
                thread = await store.get_thread(name)
                total = (await store.list_messages(name, per_page=1, with_total=True)).total
                assert thread is not None
                assert (
                    thread.message_count
                    == total
                    == len((await store.list_messages(name, per_page=None)).items)
                )
                found.append(total)
            return found

        assert await both() == [6, 0]
        await add(store, "thread-1", "thread-1-m0001", "new")
        assert await both() == [7, 0]
        await store.update_messages(
            [MessageUpdate(n, thread_id="thread-2") for n in ("new", "thread-1-m0002")]
        )
        assert await both() == [5, 2]
        await store.update_messages([MessageUpdate("new", thread_id="thread-2")])
        assert await both() == [5, 2]
        await store.delete_messages(["new", "thread-1-m0003", "unknown"])
        assert await both() == [4, 1]
        await store.clear_thread("thread-1")
        assert await both() == [0, 1]

    @case("messages.page.owner_total", "5.1.total")
    async def test_a_resources_total_counts_all_its_threads(self, store: Store) -> None:
        """resource_id alone gives the messages of all its threads, in one order, with their total."""
        first = await filled_thread(store, 3)
        second = await filled_thread(store, 2, thread_id="thread-2")
        await filled_thread(store, 4, thread_id="thread-9", resource_id="user-2")

        page = await store.list_messages(resource_id="user-1", with_total=True)

        assert (ids(page), page.total) == ([first[0], second[0], first[1], second[1], first[2]], 5)


class TestThreadPages(AdapterSuite):
    """The same rules for lists of threads, resources and memories."""

    @case("threads.page.counts_from_zero", "5.1.page", "5.1.more")
    async def test_pages_of_threads_follow_each_other(self, store: Store) -> None:
        """Tied threads in pages come once each, in both directions and both orders, has_more exact."""
        names = await tied_threads(store, 7)
        for by in ("created_at", "updated_at"):
            both: dict[Order, list[str]] = {"asc": names, "desc": names[::-1]}
            for order, expected in both.items():
                pages = [
                    await store.list_threads(order_by=by, order=order, page=n, per_page=3) for n in range(3)
                ]
                assert [ids(page) for page in pages] == [expected[:3], expected[3:6], expected[6:]]
                assert [page.has_more for page in pages] == [True, True, False]

    @case("threads.page.sizes", "5.1.page", "5.1.zero", "5.1.end")
    async def test_none_zero_and_past_the_end(self, store: Store) -> None:
        """per_page None is all, 0 is nothing without a total, past the end is empty with the real total."""
        names = await tied_threads(store, 5)

        assert ids(await store.list_threads(order="asc", per_page=None)) == names
        nothing = await store.list_threads(per_page=0, with_total=True)
        assert (nothing.items, nothing.total, nothing.has_more, nothing.next_cursor) == (
            [],
            None,
            False,
            None,
        )
        past = await store.list_threads(page=9, per_page=2, with_total=True)
        assert (past.items, past.total, past.has_more, past.next_cursor) == ([], 5, False, None)

    @case("threads.page.invalid", "5.1.invalid")
    async def test_sizes_and_pages_of_threads_that_are_no_counts_are_errors(self, store: Store) -> None:
        """Negative, fractional, bool and overflowing page and per_page are errors in every list."""
        wrong: list[Any] = [-1, 1.5, True, "1", HUGE]
        for listing in (store.list_threads, store.list_resources, store.list_memories):
            for value in wrong:
                with pytest.raises(InvalidArgumentError):
                    await listing(per_page=value)
                with pytest.raises(InvalidArgumentError):
                    await listing(page=value)
            with pytest.raises(InvalidArgumentError):
                await listing(per_page=None, page=1)

    @case("threads.page.total_filtered", "5.1.total", "5.4.first")
    async def test_the_total_of_threads_counts_the_matches(self, store: Store) -> None:
        """With filter and owner the total is the number of matches."""
        for index in range(9):
            owner = f"user-{index % 2}"
            await store.create_thread(
                owner, thread_id=f"t{index}", metadata={"three": index % 3 == 0}, created_at=at(index)
            )

        page = await store.list_threads(where={"three": True}, per_page=2, with_total=True)
        assert (ids(page), page.total, page.has_more) == (["t6", "t3"], 3, True)
        page = await store.list_threads(
            resource_id="user-0", where={"three": True}, per_page=2, with_total=True
        )
        assert (ids(page), page.total, page.has_more) == (["t6", "t0"], 2, False)

    @case("threads.page.many", "5.1.page")
    async def test_a_thousand_threads_are_listed_page_by_page(self, store: Store) -> None:
        """Listing without any argument gives 100 of 300 threads, and cursors reach the others."""
        names = await tied_threads(store, 300)

        page = await store.list_threads()

        assert (len(page.items), page.per_page, page.has_more) == (100, 100, True)
        assert await walk_threads(store) == names[::-1]

    @case("resources.page.walk", "5.1.page", "5.1.walk", "3.resources")
    async def test_resources_are_paged_by_id(self, store: Store) -> None:
        """list_resources orders by id; pages, cursors and totals agree."""
        names = sorted(["b", "B", "a", "é", "\U00010000", "\uffff", "10", "9"])
        for name in reversed(names):
            await store.update_resource(name, metadata={"n": name})

        found: list[str] = []
        async for page in pages(store.list_resources, per_page=3, with_total=True):
            assert page.total == len(names)
            found += [resource.id for resource in page.items]

        assert found == names
        assert [r.id for r in (await store.list_resources(page=1, per_page=3)).items] == names[3:6]
        assert [r.id async for r in store.iter_resources(per_page=2)] == names


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
