"""Threads: creating, ensuring, saving, reading, listing, changing, clearing, transferring, deleting."""

from __future__ import annotations

from uuid import UUID

import pytest

from threadkeep import (
    AlreadyExistsError,
    ConflictError,
    NewMessage,
    NotFoundError,
    OwnershipError,
    Store,
    Thread,
)

from ..cases import case
from .base import AdapterSuite
from .samples import NOON, ONE_MICROSECOND, add, at, contents_of, filled_thread, ids, unchanged

__all__ = ["TestThreadCreate", "TestThreadDelete", "TestThreadList", "TestThreadSave", "TestThreadUpdate"]


class TestThreadCreate(AdapterSuite):
    """create_thread, ensure_thread and get_thread."""

    @case("threads.create.round_trip", "3.create", "3.get_thread", "4.exact")
    async def test_a_created_thread_reads_back_as_it_was_returned(self, store: Store) -> None:
        """What create_thread returns is what get_thread reads."""
        made = await store.create_thread(
            "user-1", thread_id="thread-1", title="Trip", metadata={"a": [1, {"b": None}]}, created_at=NOON
        )

        assert await store.get_thread("thread-1") == made
        assert made == Thread(
            id="thread-1",
            resource_id="user-1",
            title="Trip",
            metadata={"a": [1, {"b": None}]},
            working_memory=None,
            message_count=0,
            created_at=NOON,
            updated_at=NOON,
        )

    @case("threads.create.defaults", "3.create")
    async def test_a_thread_needs_only_an_owner(self, store: Store) -> None:
        """Without an id a thread gets a UUIDv7; title and metadata are empty, updated_at is created_at."""
        made = await store.create_thread("user-1")

        assert UUID(made.id).version == 7
        assert (made.title, made.metadata, made.working_memory, made.message_count) == ("", {}, None, 0)
        assert made.created_at == made.updated_at

    @case("threads.create.taken_id", "3.create")
    async def test_a_taken_id_is_an_error_and_changes_nothing(self, store: Store) -> None:
        """A taken id is AlreadyExistsError, for the same owner and for another; nothing is written."""
        await store.create_thread("user-1", thread_id="thread-1", title="first")

        for owner in ("user-1", "user-2"):
            async with unchanged(store):
                with pytest.raises(AlreadyExistsError) as taken:
                    await store.create_thread(owner, thread_id="thread-1", title="second")
            assert (taken.value.kind, taken.value.identifier) == ("thread", "thread-1")

    @case("threads.ensure.creates", "3.ensure")
    async def test_ensuring_an_absent_thread_creates_it(self, store: Store) -> None:
        """ensure_thread creates an absent thread with all that is given."""
        made = await store.ensure_thread(
            "user-1", thread_id="thread-1", title="T", metadata={"a": 1}, created_at=NOON
        )

        assert (made.title, made.metadata, made.created_at) == ("T", {"a": 1}, NOON)
        assert await store.get_thread("thread-1") == made

    @case("threads.ensure.returns_existing", "3.ensure")
    async def test_ensuring_an_existing_thread_changes_nothing(self, store: Store) -> None:
        """ensure_thread returns the thread that is there, whatever else it is given."""
        made = await store.create_thread("user-1", thread_id="thread-1", title="first", metadata={"a": 1})

        async with unchanged(store):
            assert (
                await store.ensure_thread("user-1", thread_id="thread-1", title="second", metadata={"b": 2})
                == made
            )

    @case("threads.ensure.other_owner", "3.ensure", "5.3.writes")
    async def test_ensuring_another_resources_thread_is_refused(self, store: Store) -> None:
        """ensure_thread of another resource's thread is OwnershipError; nothing is written."""
        await store.create_thread("user-1", thread_id="thread-1")

        async with unchanged(store):
            with pytest.raises(OwnershipError) as refused:
                await store.ensure_thread("user-2", thread_id="thread-1")
        assert (refused.value.kind, refused.value.identifier) == ("thread", "thread-1")

    @case("threads.get.absent", "3.get_thread")
    async def test_an_absent_thread_reads_as_none(self, store: Store) -> None:
        """get_thread of an unknown id is None."""
        await store.create_thread("user-1", thread_id="thread-1")

        assert await store.get_thread("thread-2") is None
        assert await store.get_thread("Thread-1") is None

    @case("threads.create.any_order_of_times", "4.2.utc")
    async def test_created_at_may_lie_anywhere(self, store: Store) -> None:
        """A thread may be created in the past or the future; updated_at starts equal to created_at."""
        for name, moment in (("past", at(-(10**9))), ("future", at(10**9))):
            made = await store.create_thread("user-1", thread_id=name, created_at=moment)
            assert (made.created_at, made.updated_at) == (moment, moment)


class TestThreadSave(AdapterSuite):
    """save_thread: the upsert for imports."""

    THREAD = Thread(
        id="thread-1",
        resource_id="user-1",
        title="imported",
        metadata={"source": "elsewhere"},
        working_memory="# notes",
        message_count=99,
        created_at=NOON,
        updated_at=at(60),
    )

    @case("threads.save.creates", "3.save_thread", "3.imports")
    async def test_saving_an_absent_thread_keeps_everything_given(self, store: Store) -> None:
        """save_thread stores a thread with its times and working memory; message_count is derived."""
        saved = await store.save_thread(self.THREAD)

        assert saved == await store.get_thread("thread-1")
        assert (saved.created_at, saved.updated_at) == (NOON, at(60))
        assert (saved.title, saved.metadata, saved.working_memory) == (
            "imported",
            {"source": "elsewhere"},
            "# notes",
        )
        assert saved.message_count == 0

    @case("threads.save.replaces", "3.save_thread", "3.imports")
    async def test_saving_again_replaces_every_field_but_the_messages(self, store: Store) -> None:
        """save_thread replaces title, metadata, working memory and times; messages and their count stay."""
        await store.create_thread("user-1", thread_id="thread-1", title="old", metadata={"old": True})
        await add(store, "thread-1", "a", "b")

        saved = await store.save_thread(self.THREAD)

        assert saved == await store.get_thread("thread-1")
        assert (saved.title, saved.metadata, saved.message_count) == ("imported", {"source": "elsewhere"}, 2)
        assert (saved.created_at, saved.updated_at) == (NOON, at(60))
        assert ids(await store.list_messages("thread-1")) == ["a", "b"]

    @case("threads.save.older_updated_at", "3.imports")
    async def test_saving_may_set_updated_at_back(self, store: Store) -> None:
        """An importer saves each thread again after its messages, which sets updated_at back to what it
        was.
        """
        await store.save_thread(self.THREAD)
        await add(store, "thread-1", "a")

        saved = await store.save_thread(self.THREAD)

        assert saved.updated_at == at(60)
        assert ids(await store.list_threads(order_by="updated_at")) == ["thread-1"]

    @case("threads.save.never_changes_owner", "3.save_thread", "5.3.writes")
    async def test_saving_under_another_owner_is_refused(self, store: Store) -> None:
        """save_thread never changes the owner: OwnershipError, nothing written."""
        await store.create_thread("user-2", thread_id="thread-1", title="theirs")

        async with unchanged(store):
            with pytest.raises(OwnershipError):
                await store.save_thread(self.THREAD)

    @case("threads.save.refilters", "3.save_thread", "5.4.first")
    async def test_a_replaced_thread_is_found_by_its_new_metadata_only(self, store: Store) -> None:
        """Filters and orders see a saved thread as it is now, never as it was."""
        await store.create_thread("user-1", thread_id="thread-1", metadata={"source": "here", "gone": 1})
        await store.save_thread(self.THREAD)

        assert ids(await store.list_threads(where={"source": "elsewhere"})) == ["thread-1"]
        assert ids(await store.list_threads(where={"source": "here"})) == []
        assert ids(await store.list_threads(where={"gone": 1})) == []

    @case("threads.save.twice_is_once", "7.repeat", "3.imports")
    async def test_saving_the_same_thread_twice_is_as_saving_it_once(self, store: Store) -> None:
        """save_thread is safe to repeat."""
        await store.save_thread(self.THREAD)

        async with unchanged(store):
            await store.save_thread(self.THREAD)


class TestThreadList(AdapterSuite):
    """list_threads and iter_threads."""

    @case("threads.list.newest_first", "3.list_threads", "4.5.total")
    async def test_the_default_order_is_newest_first(self, store: Store) -> None:
        """list_threads gives the newest created first unless told otherwise."""
        for name, second in (("b", 2), ("a", 1), ("c", 3)):
            await store.create_thread("user-1", thread_id=name, created_at=at(second))

        assert ids(await store.list_threads()) == ["c", "b", "a"]
        assert ids(await store.list_threads(order="asc")) == ["a", "b", "c"]

    @case("threads.list.ties_by_id", "4.5.total")
    async def test_threads_of_one_time_are_ordered_by_id(self, store: Store) -> None:
        """Threads created at one time are ordered by id, code point by code point, in both directions."""
        names = ["Z", "a", "B", "é", "\U0001f600", "\uffff", "_", "1", "10", "9"]
        for name in names:
            await store.create_thread("user-1", thread_id=name, created_at=NOON)

        assert ids(await store.list_threads(order="asc")) == sorted(names)
        assert ids(await store.list_threads(order="desc")) == sorted(names, reverse=True)

    @case("threads.list.by_updated_at", "3.list_threads", "4.5.total")
    async def test_threads_can_be_ordered_by_change(self, store: Store) -> None:
        """order_by="updated_at" follows every change, and is created_at's order for untouched threads."""
        for index, name in enumerate(("a", "b", "c")):
            await store.create_thread("user-1", thread_id=name, created_at=at(index))
        assert ids(await store.list_threads(order_by="updated_at", order="asc")) == ["a", "b", "c"]

        await store.update_thread("a", title="changed")

        assert ids(await store.list_threads(order_by="updated_at", order="asc")) == ["b", "c", "a"]
        assert ids(await store.list_threads(order_by="updated_at")) == ["a", "c", "b"]

    @case("threads.list.updated_at_ties", "4.5.total")
    async def test_threads_changed_at_one_time_are_ordered_by_id(self, store: Store) -> None:
        """Equal updated_at is ordered by id, and created_at plays no part in it."""
        for index, name in enumerate(("c", "a", "b")):
            thread = await store.create_thread("user-1", thread_id=name, created_at=at(index))
            await store.save_thread(
                Thread(id=name, resource_id="user-1", created_at=thread.created_at, updated_at=at(100))
            )

        assert ids(await store.list_threads(order_by="updated_at", order="asc")) == ["a", "b", "c"]
        assert ids(await store.list_threads(order_by="updated_at")) == ["c", "b", "a"]

    @case("threads.list.by_owner", "3.list_threads", "5.3.reads")
    async def test_a_resource_sees_its_own_threads_only(self, store: Store) -> None:
        """resource_id limits the list, its total and its pages to one owner; without it all are listed."""
        for index in range(4):
            await store.create_thread(f"user-{index % 2}", thread_id=f"t{index}", created_at=at(index))

        page = await store.list_threads(resource_id="user-0", with_total=True)

        assert (ids(page), page.total) == (["t2", "t0"], 2)
        assert ids(await store.list_threads(resource_id="user-9")) == []
        assert len((await store.list_threads()).items) == 4

    @case("threads.list.empty_store", "3.list_threads", "5.1.end")
    async def test_an_empty_store_lists_nothing(self, store: Store) -> None:
        """An empty store gives an empty page, and 0 as the total where asked."""
        page = await store.list_threads(with_total=True)

        assert (page.items, page.has_more, page.next_cursor, page.total) == ([], False, None, 0)
        assert (await store.list_threads()).total is None

    @case("threads.list.whole_records", "3.list_threads", "4.exact")
    async def test_a_listed_thread_is_the_whole_thread(self, store: Store) -> None:
        """A list gives threads as get_thread does, with working memory and message count."""
        await filled_thread(store, 3)
        await store.update_thread("thread-1", title="T", metadata={"a": {"b": [1]}}, working_memory="# notes")

        (listed,) = (await store.list_threads()).items

        assert listed == await store.get_thread("thread-1")
        assert (listed.working_memory, listed.message_count) == ("# notes", 3)

    @case("threads.iter.all", "3.iter")
    async def test_iterating_gives_every_thread_once_in_order(self, store: Store) -> None:
        """iter_threads walks over all pages, in the asked order, with filter and owner."""
        for index in range(7):
            await store.create_thread(
                "user-1", thread_id=f"t{index}", metadata={"even": index % 2 == 0}, created_at=at(index // 2)
            )
        await store.create_thread("user-2", thread_id="other", created_at=NOON)

        walked = [
            thread.id async for thread in store.iter_threads(resource_id="user-1", order="asc", per_page=2)
        ]
        even = [t.id async for t in store.iter_threads(where={"even": True}, per_page=1)]

        assert walked == [f"t{index}" for index in range(7)]
        assert even == ["t6", "t4", "t2", "t0"]


class TestThreadUpdate(AdapterSuite):
    """update_thread: partial, guarded."""

    @case("threads.update.title_only", "3.omitted", "3.update_thread")
    async def test_changing_the_title_leaves_all_else(self, store: Store) -> None:
        """Writing a title erases neither metadata nor working memory nor messages."""
        await filled_thread(store, 2)
        before = await store.update_thread("thread-1", metadata={"a": 1}, working_memory="# notes")

        after = await store.update_thread("thread-1", title="new")

        assert after == await store.get_thread("thread-1")
        assert (after.title, after.metadata, after.working_memory) == ("new", {"a": 1}, "# notes")
        assert (after.message_count, after.created_at) == (2, before.created_at)
        assert after.updated_at > before.updated_at

    @case("threads.update.metadata_is_merged", "4.7.shallow")
    async def test_metadata_is_merged_shallowly(self, store: Store) -> None:
        """New keys are added, given keys are replaced whole, others stay, and a null is stored as null."""
        await store.create_thread("user-1", thread_id="t", metadata={"a": 1, "b": {"x": 1, "y": 2}, "c": 3})

        after = await store.update_thread("t", metadata={"b": {"z": 3}, "c": None, "d": [4]})

        assert after.metadata == {"a": 1, "b": {"z": 3}, "c": None, "d": [4]}
        assert await store.get_thread("t") == after
        assert ids(await store.list_threads(where={"c": None})) == ["t"]

    @case("threads.update.metadata_replaced", "4.7.shallow")
    async def test_metadata_is_replaced_on_request(self, store: Store) -> None:
        """replace_metadata drops the keys that are not given, also from filters."""
        await store.create_thread("user-1", thread_id="t", metadata={"a": 1, "b": 2})

        after = await store.update_thread("t", metadata={"b": 3}, replace_metadata=True)

        assert after.metadata == {"b": 3}
        assert ids(await store.list_threads(where={"a": 1})) == []
        assert ids(await store.list_threads(where={"b": 3})) == ["t"]

    @case("threads.update.replace_without_metadata", "3.omitted")
    async def test_replacing_without_metadata_keeps_it(self, store: Store) -> None:
        """replace_metadata alone does nothing: the metadata was omitted."""
        await store.create_thread("user-1", thread_id="t", metadata={"a": 1})

        assert (await store.update_thread("t", title="x", replace_metadata=True)).metadata == {"a": 1}

    @case("threads.update.working_memory", "3.update_thread", "3.omitted")
    async def test_working_memory_is_set_kept_and_removed(self, store: Store) -> None:
        """A document is set; omitted, it stays; None removes it; an empty text is a text."""
        await store.create_thread("user-1", thread_id="t")

        assert (await store.update_thread("t", working_memory="# notes")).working_memory == "# notes"
        assert (await store.update_thread("t", title="x")).working_memory == "# notes"
        assert (await store.update_thread("t", working_memory=None)).working_memory is None
        assert (await store.update_thread("t", working_memory="")).working_memory == ""

    @case("threads.update.absent", "3.update_thread")
    async def test_an_absent_thread_cannot_be_updated(self, store: Store) -> None:
        """update_thread of an unknown id is NotFoundError and creates nothing."""
        async with unchanged(store):
            with pytest.raises(NotFoundError) as absent:
                await store.update_thread("thread-1", title="x")
        assert (absent.value.kind, absent.value.identifier) == ("thread", "thread-1")

    @case("threads.update.if_title_holds", "4.7.guards")
    async def test_a_guard_that_holds_lets_the_write_through(self, store: Store) -> None:
        """if_title equal to the stored title lets the write happen; an empty title is a title."""
        await store.create_thread("user-1", thread_id="t")

        assert (await store.update_thread("t", title="first", if_title="")).title == "first"
        assert (await store.update_thread("t", title="second", if_title="first")).title == "second"

    @case("threads.update.if_title_fails", "4.7.guards")
    async def test_a_guard_that_fails_writes_nothing(self, store: Store) -> None:
        """if_title with another title is ConflictError and writes nothing: not the title, not the rest."""
        await store.create_thread("user-1", thread_id="t", title="Title")

        for guard in ("", "title", "Title ", "Tıtle"):
            async with unchanged(store):
                with pytest.raises(ConflictError):
                    await store.update_thread(
                        "t", title="x", metadata={"a": 1}, working_memory="y", if_title=guard
                    )

    @case("threads.update.rises", "4.5.touch")
    async def test_updated_at_rises_with_every_update(self, store: Store) -> None:
        """Each of many quick updates raises updated_at; created_at never changes."""
        thread = await store.create_thread("user-1", thread_id="t")
        seen = [thread.updated_at]
        for index in range(5):
            changed = await store.update_thread("t", title=str(index))
            assert changed.created_at == thread.created_at
            seen.append(changed.updated_at)

        assert seen == sorted(set(seen))

    @case("threads.update.from_the_future", "4.5.touch")
    async def test_updated_at_rises_from_a_time_in_the_future(self, store: Store) -> None:
        """A touched thread whose updated_at lies ahead of the clock gets exactly one microsecond more."""
        ahead = at(10**9)
        await store.save_thread(Thread(id="t", resource_id="user-1", created_at=NOON, updated_at=ahead))

        assert (await store.update_thread("t", title="x")).updated_at == ahead + ONE_MICROSECOND
        await add(store, "t", "a", "b", "c")
        thread = await store.get_thread("t")
        assert thread is not None
        assert thread.updated_at == ahead + 2 * ONE_MICROSECOND

    @case("threads.transfer.moves_all", "3.transfer")
    async def test_a_transfer_gives_thread_and_messages_to_the_new_owner(self, store: Store) -> None:
        """After transfer_thread the new owner has thread and messages, the old one nothing; the rest is
        unchanged.
        """
        names = await filled_thread(store, 5)
        before = await store.update_thread("thread-1", title="T", metadata={"a": 1}, working_memory="W")
        was = await store.get_messages(names)

        moved = await store.transfer_thread("thread-1", "user-2")

        assert moved == await store.get_thread("thread-1", resource_id="user-2")
        assert (moved.resource_id, moved.title, moved.metadata) == ("user-2", "T", {"a": 1})
        assert (moved.working_memory, moved.message_count) == ("W", 5)
        assert moved.updated_at > before.updated_at
        assert await store.get_thread("thread-1", resource_id="user-1") is None
        now = (await store.list_messages(resource_id="user-2")).items
        assert [(m.id, m.resource_id, m.seq, m.content) for m in now] == [
            (m.id, "user-2", m.seq, m.content) for m in was
        ]
        assert ids(await store.list_messages(resource_id="user-1")) == []
        assert ids(await store.list_threads(resource_id="user-1")) == []

    @case("threads.transfer.filters_follow", "3.transfer", "5.4.first")
    async def test_filters_follow_a_transferred_thread(self, store: Store) -> None:
        """Filtered lists of the new owner find the thread and its messages, those of the old owner do not."""
        await filled_thread(store, 4)
        await store.update_thread("thread-1", metadata={"kind": "k"})

        await store.transfer_thread("thread-1", "user-2")

        assert ids(await store.list_threads(resource_id="user-2", where={"kind": "k"})) == ["thread-1"]
        assert ids(await store.list_threads(resource_id="user-1", where={"kind": "k"})) == []
        page = await store.list_messages(resource_id="user-2", where={"even": True}, with_total=True)
        assert (len(page.items), page.total) == (2, 2)
        assert ids(await store.list_messages(resource_id="user-1", where={"even": True})) == []

    @case("threads.transfer.absent", "3.transfer")
    async def test_an_absent_thread_cannot_be_transferred(self, store: Store) -> None:
        """transfer_thread of an unknown id is NotFoundError."""
        async with unchanged(store):
            with pytest.raises(NotFoundError):
                await store.transfer_thread("thread-1", "user-2")

    @case("threads.transfer.to_itself", "3.transfer", "7.repeat")
    async def test_a_transfer_to_the_owner_keeps_everything(self, store: Store) -> None:
        """A transfer to the present owner changes nothing but updated_at, so repeating one is safe."""
        await filled_thread(store, 3)
        before = await store.transfer_thread("thread-1", "user-2")

        again = await store.transfer_thread("thread-1", "user-2")

        assert (again.resource_id, again.message_count) == ("user-2", 3)
        assert again.updated_at > before.updated_at
        assert len((await store.list_messages(resource_id="user-2")).items) == 3


class TestThreadDelete(AdapterSuite):
    """delete_thread and clear_thread."""

    @case("threads.delete.with_messages", "4.8.whole")
    async def test_a_thread_goes_with_its_messages(self, store: Store) -> None:
        """A deleted thread is gone from reads, lists and filters, with all its messages; others stay."""
        names = await filled_thread(store, 5)
        await filled_thread(store, 2, thread_id="thread-2")
        await store.update_thread("thread-1", metadata={"a": 1})

        assert await store.delete_thread("thread-1") is True

        assert await store.get_thread("thread-1") is None
        assert ids(await store.list_threads(with_total=True)) == ["thread-2"]
        assert ids(await store.list_threads(where={"a": 1})) == []
        assert await store.get_messages(names) == []
        page = await store.list_messages(resource_id="user-1", where={"even": True}, with_total=True)
        assert (len(page.items), page.total) == (1, 1)

    @case("threads.delete.absent", "4.8.absent")
    async def test_deleting_an_absent_thread_is_no_error(self, store: Store) -> None:
        """delete_thread of what is absent returns False; deleting twice is safe."""
        await store.create_thread("user-1", thread_id="t")

        assert await store.delete_thread("T") is False
        assert await store.delete_thread("t") is True
        assert await store.delete_thread("t") is False

    @case("threads.delete.id_is_free_again", "4.8.whole")
    async def test_a_deleted_id_can_be_used_again_and_starts_empty(self, store: Store) -> None:
        """A thread created under a deleted id, by anyone, has none of the old messages or filters."""
        names = await filled_thread(store, 3)
        await store.delete_thread("thread-1")

        made = await store.create_thread("user-2", thread_id="thread-1")

        assert made.message_count == 0
        assert (await store.list_messages("thread-1", with_total=True)).total == 0
        assert ids(await store.list_messages("thread-1", where={"even": True})) == []
        await store.save_messages([NewMessage("thread-1", "user", "new", id=names[0])])
        assert len((await store.list_messages(resource_id="user-2")).items) == 1

    @case("threads.delete.many_messages", "4.8.size", "4.8.whole")
    async def test_deleting_is_not_refused_for_size(self, store: Store) -> None:
        """A thread of thousands of messages is deleted whole."""
        await store.create_thread("user-1", thread_id="t")
        for start in range(0, 3000, 500):
            await add(store, "t", *[f"m{start + index}" for index in range(500)])

        assert await store.delete_thread("t") is True

        assert await contents_of(store) == ([], [], [], [])
        assert await store.get_messages(["m0", "m2999"]) == []

    @case("threads.clear.counts", "3.clear", "4.5.touch")
    async def test_clearing_deletes_the_messages_and_keeps_the_thread(self, store: Store) -> None:
        """clear_thread returns how many there were, keeps the thread, and touches it."""
        names = await filled_thread(store, 5)
        before = await store.update_thread("thread-1", title="T", metadata={"a": 1}, working_memory="W")

        assert await store.clear_thread("thread-1") == 5

        after = await store.get_thread("thread-1")
        assert after is not None
        assert (after.title, after.metadata, after.working_memory, after.message_count) == (
            "T",
            {"a": 1},
            "W",
            0,
        )
        assert after.updated_at > before.updated_at
        assert await store.get_messages(names) == []
        assert ids(await store.list_messages("thread-1", where={"even": True})) == []

    @case("threads.clear.empty", "3.clear", "4.8.absent")
    async def test_clearing_what_is_empty_or_absent_changes_nothing(self, store: Store) -> None:
        """clear_thread of an empty or unknown thread returns 0; an empty thread is not touched."""
        await store.create_thread("user-1", thread_id="t")

        async with unchanged(store):
            assert await store.clear_thread("t") == 0
            assert await store.clear_thread("unknown") == 0

    @case("threads.clear.others_stay", "3.clear")
    async def test_clearing_leaves_other_threads_alone(self, store: Store) -> None:
        """clear_thread deletes from one thread only."""
        await filled_thread(store, 3)
        await filled_thread(store, 2, thread_id="thread-2")

        await store.clear_thread("thread-1")

        assert (await store.list_messages(resource_id="user-1", with_total=True)).total == 2
        other = await store.get_thread("thread-2")
        assert other is not None
        assert other.message_count == 2
