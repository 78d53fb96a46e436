"""Scope, dates, and messages included with their neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep import Include, InvalidArgumentError, InvalidFilterError, Store, TimeRange
from threadkeep.models import Order

from ..cases import case
from .base import AdapterSuite
from .samples import NOON, ONE_MICROSECOND, add, at, filled_thread, ids, pages, walk_messages

__all__ = ["TestDates", "TestIncludes", "TestScope"]


class TestScope(AdapterSuite):
    """threads and resource_id."""

    @case("messages.scope.one_is_needed", "5.2.scope")
    async def test_threads_or_resource_must_be_given(self, store: Store) -> None:
        """Without threads and resource_id list_messages is an error: nothing lists everybody's messages."""
        await filled_thread(store, 3)

        with pytest.raises(InvalidArgumentError):
            await store.list_messages()
        with pytest.raises(InvalidArgumentError):
            await store.list_messages(
                None, where={"even": True}, per_page=0, include=[Include("thread-1-m0001")]
            )

    @case("messages.scope.both_hold", "5.2.scope")
    async def test_with_both_given_both_hold(self, store: Store) -> None:
        """threads within a resource: another resource's thread among them contributes nothing."""
        mine = await filled_thread(store, 3)
        await filled_thread(store, 3, thread_id="thread-2", resource_id="user-2")

        page = await store.list_messages(["thread-1", "thread-2"], resource_id="user-1", with_total=True)
        assert (ids(page), page.total) == (mine, 3)
        page = await store.list_messages("thread-2", resource_id="user-1", with_total=True)
        assert (page.items, page.total, page.has_more) == ([], 0, False)

    @case("messages.scope.one_id_or_a_list", "5.2.scope")
    async def test_a_string_is_one_thread(self, store: Store) -> None:
        """A lone id and a list of one are the same; a string is never a list of letters."""
        names = await filled_thread(store, 2)
        await filled_thread(store, 2, thread_id="t", resource_id="user-2")

        assert (
            ids(await store.list_messages("thread-1"))
            == ids(await store.list_messages(["thread-1"]))
            == names
        )
        assert ids(await store.list_messages(("thread-1",))) == names

    @case("messages.scope.empty_list", "3.empty_list", "5.2.scope")
    async def test_an_empty_list_of_threads_selects_nothing(self, store: Store) -> None:
        """threads=[] gives nothing and 0 as the total, with or without a resource; only None means not
        given.
        """
        names = await filled_thread(store, 3)

        for owner in (None, "user-1"):
            page = await store.list_messages([], resource_id=owner, with_total=True)
            assert (page.items, page.total, page.has_more, page.next_cursor) == ([], 0, False, None)
        assert ids(await store.list_messages(None, resource_id="user-1")) == names

    @case("messages.scope.unknown_thread", "5.2.scope")
    async def test_an_unknown_thread_is_empty(self, store: Store) -> None:
        """An unknown thread or resource lists nothing and is no error."""
        await filled_thread(store, 2)

        for query in (
            {"threads": "unknown"},
            {"resource_id": "unknown"},
            {"threads": ["THREAD-1", " thread-1"]},
        ):
            page = await store.list_messages(**query, with_total=True)  # pyright: ignore[reportArgumentType]  (each is legal)
            assert (page.items, page.total) == ([], 0)

    @case("messages.scope.hundred_threads", "5.2.scope")
    async def test_a_hundred_threads_are_fine_and_more_are_not(self, store: Store) -> None:
        """100 threads are searched together, in one order; 101 are an error."""
        expected: list[str] = []
        for index in range(100):
            await store.create_thread("user-1", thread_id=f"t{index}")
            await add(store, f"t{index}", f"m{index}", created_at=at(-index), metadata={"half": index % 2})
            expected.insert(0, f"m{index}")
        names = [f"t{index}" for index in range(100)]

        page = await store.list_messages(names, per_page=50, with_total=True)
        assert (ids(page), page.total, page.has_more) == (expected[:50], 100, True)
        assert ids(await store.list_messages(names, where={"half": 1}, per_page=10)) == expected[::2][:10]
        with pytest.raises(InvalidArgumentError):
            await store.list_messages([*names, "t100"])

    @case("messages.scope.invalid", "3.validate", "5.2.scope")
    async def test_what_is_no_scope_is_an_error(self, store: Store) -> None:
        """Empty, overlong and non-string ids, and things that are no lists, are errors."""
        wrong: list[Any] = [
            "",
            "x" * 256,
            7,
            b"t",
            {"$ne": ""},
            [""],
            [None],
            [["t"]],
            ["a\0"],
            ["\ud800"],
            {"t": 1},
        ]
        for value in wrong:
            with pytest.raises(InvalidArgumentError):
                await store.list_messages(value)
        for value in ["", "x" * 256, 7, {"$ne": ""}, ["user-1"], "a\0"]:
            scope: Any = value
            with pytest.raises(InvalidArgumentError):
                await store.list_messages(resource_id=scope)


class TestDates(AdapterSuite):
    """TimeRange."""

    @case("messages.dates.inclusive", "5.2.dates")
    async def test_both_ends_belong_to_a_range(self, store: Store) -> None:
        """start and end are inclusive to the microsecond; open ends are unbounded."""
        names = await filled_thread(store, 6)

        assert ids(await store.list_messages("thread-1", created=TimeRange(at(1), at(3)))) == names[1:4]
        assert ids(await store.list_messages("thread-1", created=TimeRange(start=at(4)))) == names[4:]
        assert ids(await store.list_messages("thread-1", created=TimeRange(end=at(1)))) == names[:2]
        assert ids(await store.list_messages("thread-1", created=TimeRange())) == names
        near = TimeRange(at(1) + ONE_MICROSECOND, at(3) - ONE_MICROSECOND)
        assert ids(await store.list_messages("thread-1", created=near)) == names[2:3]

    @case("messages.dates.exclusive", "5.2.dates")
    async def test_each_end_can_be_excluded(self, store: Store) -> None:
        """start_exclusive and end_exclusive leave out exactly the end itself."""
        names = await filled_thread(store, 6)

        def dates(**ends: bool) -> TimeRange:
            return TimeRange(start=at(1), end=at(3), **ends)

        assert ids(await store.list_messages("thread-1", created=dates(start_exclusive=True))) == names[2:4]
        assert ids(await store.list_messages("thread-1", created=dates(end_exclusive=True))) == names[1:3]
        both = dates(start_exclusive=True, end_exclusive=True)
        assert ids(await store.list_messages("thread-1", created=both)) == names[2:3]

    @case("messages.dates.tied", "5.2.dates", "4.5.total")
    async def test_all_messages_of_an_end_are_in_or_out(self, store: Store) -> None:
        """Of messages with one time, a bound takes all or none, whatever their seq and id."""
        names = await filled_thread(store, 5, tied=True)

        for order in ("asc", "desc"):
            found = await store.list_messages(
                "thread-1", created=TimeRange(NOON, NOON), order=order, with_total=True
            )
            assert (sorted(ids(found)), found.total) == (sorted(names), 5)
            for dates in (
                TimeRange(start=NOON, start_exclusive=True),
                TimeRange(end=NOON, end_exclusive=True),
            ):
                assert ids(await store.list_messages("thread-1", created=dates, order=order)) == []

    @case("messages.dates.empty", "5.2.dates")
    async def test_an_empty_range_is_empty(self, store: Store) -> None:
        """A range that ends before it starts, or excludes its only moment, selects nothing."""
        await filled_thread(store, 3)

        for dates in (TimeRange(at(2), at(1)), TimeRange(at(1), at(1), start_exclusive=True)):
            page = await store.list_messages("thread-1", created=dates, with_total=True)
            assert (page.items, page.total, page.has_more) == ([], 0, False)

    @case("messages.dates.with_pages", "5.2.dates", "5.1.walk")
    async def test_dates_hold_through_pages_and_cursors(self, store: Store) -> None:
        """A walk within dates stays within them, in both orders, over several threads."""
        first = await filled_thread(store, 10)
        second = await filled_thread(store, 10, thread_id="thread-2")
        expected = [name for pair in zip(first[3:8], second[3:8], strict=True) for name in pair]
        both: dict[Order, list[str]] = {"asc": expected, "desc": expected[::-1]}
        for order, wanted in both.items():
            dates = TimeRange(at(3), at(7))
            found = await walk_messages(
                store, ["thread-1", "thread-2"], created=dates, order=order, per_page=3
            )
            assert found == wanted

    @case("messages.dates.invalid", "4.2.naive", "3.validate")
    async def test_naive_and_other_bounds_are_errors(self, store: Store) -> None:
        """Naive datetimes, dates, texts and numbers are no bounds; a tuple is no range."""
        await filled_thread(store, 2)
        naive = NOON.replace(tzinfo=None)
        wrong: list[Any] = [naive, NOON.date(), "2024-01-01", 0, 1.5, True]
        for value in wrong:
            for dates in (TimeRange(start=value), TimeRange(end=value)):
                with pytest.raises(InvalidArgumentError):
                    await store.list_messages("thread-1", created=dates)
        for value in ((NOON, NOON), {"start": NOON}, NOON):
            no_range: Any = value
            with pytest.raises(InvalidArgumentError):
                await store.list_messages("thread-1", created=no_range)


class TestIncludes(AdapterSuite):
    """Include: messages by id with their neighbours."""

    @case("messages.include.neighbours", "5.2.include")
    async def test_an_included_message_comes_with_its_neighbours(self, store: Store) -> None:
        """before and after count messages of the target's own thread in the total order."""
        names = await filled_thread(store, 10)

        for before, after in ((0, 0), (2, 0), (0, 3), (2, 2), (100, 100)):
            include = [Include(names[5], before=before, after=after)]
            page = await store.list_messages("thread-1", include=include, per_page=0)
            assert ids(page) == names[max(5 - before, 0) : 5 + after + 1]

    @case("messages.include.edges", "5.2.include")
    async def test_windows_end_at_the_ends_of_the_thread(self, store: Store) -> None:
        """At the first and the last message a window has what there is."""
        names = await filled_thread(store, 5)

        first = await store.list_messages(
            "thread-1", include=[Include(names[0], before=3, after=1)], per_page=0
        )
        last = await store.list_messages(
            "thread-1", include=[Include(names[4], before=1, after=3)], per_page=0
        )

        assert (ids(first), ids(last)) == (names[:2], names[3:])

    @case("messages.include.ties", "5.2.include", "4.5.total")
    async def test_a_tie_never_drops_the_target(self, store: Store) -> None:
        """Among messages of one time the window is exactly the neighbours, the target among them."""
        names = await filled_thread(store, 20, tied=True)

        for index in (0, 1, 9, 18, 19):
            page = await store.list_messages(
                "thread-1", include=[Include(names[index], before=2, after=2)], per_page=0
            )
            assert ids(page) == names[max(index - 2, 0) : index + 3]

    @case("messages.include.own_thread", "5.2.include")
    async def test_neighbours_come_from_the_targets_own_thread(self, store: Store) -> None:
        """A target in another thread of the same resource brings that thread's neighbours, though the times
        interleave.
        """
        await filled_thread(store, 6)
        other = await filled_thread(store, 6, thread_id="thread-2")

        page = await store.list_messages(
            "thread-1", include=[Include(other[3], before=1, after=1)], per_page=0
        )

        assert ids(page) == other[2:5]

    @case("messages.include.thread_id", "5.2.thread")
    async def test_with_a_thread_the_target_must_be_in_it(self, store: Store) -> None:
        """thread_id names the thread the message must be in; elsewhere it is skipped."""
        names = await filled_thread(store, 3)
        other = await filled_thread(store, 3, thread_id="thread-2")

        for name, thread, found in (
            (names[1], "thread-1", [names[1]]),
            (other[1], "thread-1", []),
            (names[1], "x", []),
        ):
            include = [Include(name, thread_id=thread)]
            assert (
                ids(await store.list_messages(["thread-1", "thread-2"], include=include, per_page=0)) == found
            )

    @case("messages.include.ignores_filters", "5.2.windows")
    async def test_windows_ignore_filter_and_dates(self, store: Store) -> None:
        """Target and neighbours come whatever where and created say."""
        names = await filled_thread(store, 10)

        page = await store.list_messages(
            "thread-1",
            where={"index": 9},
            created=TimeRange(start=at(8)),
            include=[Include(names[1], before=1, after=1)],
            with_total=True,
        )

        assert ids(page) == [*names[:3], names[9]]
        assert (page.matched_ids, page.total) == ({names[9]}, 1)

    @case("messages.include.unknown", "5.2.windows")
    async def test_unknown_ids_are_skipped(self, store: Store) -> None:
        """An unknown include adds nothing and breaks nothing."""
        names = await filled_thread(store, 3)

        page = await store.list_messages(
            "thread-1", include=[Include("x", before=5, after=5), Include(names[1])], per_page=0
        )

        assert ids(page) == [names[1]]

    @case("messages.include.never_twice", "5.2.windows", "5.2.matched")
    async def test_no_message_is_repeated(self, store: Store) -> None:
        """Overlapping windows, repeated includes and matches inside windows give each message once."""
        names = await filled_thread(store, 12)
        include = [Include(names[i], before=2, after=2) for i in (4, 5, 5, 11)]

        page = await store.list_messages("thread-1", include=include, per_page=4)

        assert ids(page) == [*names[:8], *names[9:]]
        assert page.matched_ids == frozenset(names[:4])

    @case("messages.include.changes_no_page", "5.2.untouched", "5.2.matched")
    async def test_includes_leave_total_more_and_cursors_untouched(self, store: Store) -> None:
        """With includes, matches, total, has_more and the whole walk are as without them, in both orders."""
        names = await filled_thread(store, 20)
        include = [Include(names[10], before=3, after=3), Include(names[0])]
        for order in ("asc", "desc"):
            query: dict[str, Any] = {
                "order": order,
                "where": {"even": True},
                "per_page": 3,
                "with_total": True,
            }
            cursor: str | None = None
            matched: list[str] = []
            async for plain in pages(store.list_messages, "thread-1", **query):
                page = await store.list_messages("thread-1", include=include, cursor=cursor, **query)
                assert (page.total, page.has_more, page.next_cursor) == (
                    plain.total,
                    plain.has_more,
                    plain.next_cursor,
                )
                assert page.matched_ids == frozenset(ids(plain)) == plain.matched_ids
                assert set(ids(page)) == set(ids(plain)) | {*names[7:14], names[0]}
                matched += ids(plain)
                cursor = plain.next_cursor
            assert sorted(matched) == sorted(names[::2])

    @case("messages.include.in_order", "5.2.matched")
    async def test_items_are_in_the_querys_order(self, store: Store) -> None:
        """Matches and neighbours are mixed in the query's order, descending too, over several threads."""
        first = await filled_thread(store, 8)
        second = await filled_thread(store, 8, thread_id="thread-2")
        include = [Include(second[6], before=1, after=1)]
        expected = [*first[:3], second[5], second[6], second[7]]

        page = await store.list_messages("thread-1", include=include, per_page=3)
        assert ids(page) == expected
        page = await store.list_messages("thread-1", include=include, per_page=3, order="desc")
        assert ids(page) == [second[7], first[7], second[6], first[6], second[5], first[5]]

    @case("messages.include.only", "5.2.only")
    async def test_a_size_of_zero_gives_includes_alone(self, store: Store) -> None:
        """per_page=0 with includes gives the windows only: no matches, no total, no more."""
        names = await filled_thread(store, 5)

        page = await store.list_messages(
            "thread-1", include=[Include(names[2], after=1)], per_page=0, with_total=True
        )

        assert (ids(page), page.matched_ids) == (names[2:4], frozenset())
        assert (page.total, page.has_more, page.next_cursor) == (None, False, None)

    @case("messages.include.within_resource", "5.2.owner", "5.3.reads")
    async def test_windows_stay_within_the_resource(self, store: Store) -> None:
        """With resource_id no window shows another resource's message, even where its thread is named."""
        mine = await filled_thread(store, 3)
        theirs = await filled_thread(store, 3, thread_id="thread-2", resource_id="user-2")
        include = [
            Include(theirs[1], before=1, after=1),
            Include(mine[1]),
            Include(theirs[1], thread_id="thread-2"),
        ]

        page = await store.list_messages(resource_id="user-1", include=include, per_page=0)
        assert ids(page) == [mine[1]]
        page = await store.list_messages(
            ["thread-1", "thread-2"], resource_id="user-1", include=include, per_page=0
        )
        assert ids(page) == [mine[1]]

    @case("messages.include.within_owners", "5.2.owner", "5.3.reads")
    async def test_windows_stay_within_the_owners_of_the_threads(self, store: Store) -> None:
        """Without resource_id windows reach all threads of the owners of threads, and nobody else's."""
        mine = await filled_thread(store, 2)
        mine_too = await filled_thread(store, 2, thread_id="thread-2")
        theirs = await filled_thread(store, 2, thread_id="thread-3", resource_id="user-2")
        include = [Include(name) for name in (mine[0], mine_too[0], theirs[0])]

        page = await store.list_messages("thread-1", include=include, per_page=0)
        assert sorted(ids(page)) == sorted([mine[0], mine_too[0]])
        page = await store.list_messages(["thread-1", "thread-3"], include=include, per_page=0)
        assert len(page.items) == 3
        assert ids(await store.list_messages("unknown", include=include, per_page=0)) == []
        assert ids(await store.list_messages([], include=include, per_page=0)) == []

    @case("messages.include.with_empty_match", "5.2.only", "5.2.untouched")
    async def test_includes_come_where_nothing_matches(self, store: Store) -> None:
        """Past the end, and where the filter finds nothing, includes still come."""
        names = await filled_thread(store, 4)

        past = await store.list_messages(
            "thread-1", include=[Include(names[1])], page=9, per_page=2, with_total=True
        )
        assert (ids(past), past.matched_ids, past.total, past.has_more) == ([names[1]], frozenset(), 4, False)
        none = await store.list_messages(
            "thread-1", where={"x": 1}, include=[Include(names[1])], with_total=True
        )
        assert (ids(none), none.total) == ([names[1]], 0)

    @case("messages.include.invalid", "3.validate")
    async def test_windows_of_no_size_are_errors(self, store: Store) -> None:
        """Negative, fractional, bool and huge windows, empty ids, and things that are no Include, are
        errors.
        """
        await filled_thread(store, 2)
        wrong: list[Any] = [
            Include("m", before=-1), Include("m", after=-1), Include("m", before=2**63),
        ]  # fmt: skip
        odd: list[Any] = [1.5, True, "1", None]
        wrong += [Include("m", before=value) for value in odd] + [Include("m", after=value) for value in odd]
        no_id: list[Any] = ["", "x" * 256, 7, None, {"$ne": ""}, "\0"]
        wrong += [Include(value) for value in no_id] + ["m", {"id": "m"}, None]
        for include in wrong:
            with pytest.raises(InvalidArgumentError):
                await store.list_messages("thread-1", include=[include])
        with pytest.raises(InvalidArgumentError):
            await store.list_messages("thread-1", include=[Include("m")] * 101)
        with pytest.raises(InvalidArgumentError):
            await store.list_messages("thread-1", include=None)  # pyright: ignore[reportArgumentType]  (on purpose)
        with pytest.raises(InvalidFilterError):
            await store.list_messages("thread-1", include=[Include("m")], where={"$ne": 1})
