"""Pages and totals, of messages, threads and resources."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep import (
    InvalidArgumentError,
    MessageUpdate,
    Store,
    TimeRange,
)
from threadkeep.models import Order

from ..cases import case
from .base import AdapterSuite
from .samples import add, at, filled_thread, ids, pages, tied_threads, walk_threads

__all__ = ["TestMessagePages", "TestThreadPages"]

HUGE = 2**63


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
