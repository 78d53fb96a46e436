"""Messages that are changed, moved and deleted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from threadkeep import (
    InvalidArgumentError,
    MessageUpdate,
    NotFoundError,
    OwnershipError,
    Store,
)

from ..cases import case
from .base import AdapterSuite
from .samples import ONE_MICROSECOND, add, at, changed_at, count_of, filled_thread, ids, unchanged

__all__ = ["TestMessageDelete", "TestMessageUpdate"]


class TestMessageUpdate(AdapterSuite):
    """update_messages: partial, in place, moving."""

    @case("messages.update.one_field", "3.update_messages", "3.omitted")
    async def test_what_an_update_omits_stays(self, store: Store) -> None:
        """Each field can be changed alone; place, time and seq never change."""
        await store.create_thread("user-1", thread_id="t")
        (before,) = await add(store, "t", "a", metadata={"k": 1})
        updates = (
            (MessageUpdate("a", role="tool"), {"role": "tool"}),
            (MessageUpdate("a", type="v3"), {"type": "v3"}),
            (MessageUpdate("a", content=[1]), {"content": [1]}),
            (MessageUpdate("a", metadata={"l": 2}), {"metadata": {"k": 1, "l": 2}}),
        )
        for update, changes in updates:
            (after,) = await store.update_messages([update])
            before = replace(before, **changes)
            assert after == before
            assert await store.get_messages(["a"]) == [after]

    @case("messages.update.content_null", "3.omitted", "4.3.any")
    async def test_content_can_be_set_to_null(self, store: Store) -> None:
        """content=None stores a null; only leaving it out keeps the stored content."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a")

        (after,) = await store.update_messages([MessageUpdate("a", content=None)])

        assert after.content is None
        assert (await store.get_messages(["a"]))[0].content is None

    @case("messages.update.metadata", "4.7.shallow")
    async def test_metadata_is_merged_or_replaced(self, store: Store) -> None:
        """Metadata is merged shallowly with nulls stored, or replaced on request; filters follow."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", metadata={"x": 1, "y": {"p": 1}})

        (merged,) = await store.update_messages([MessageUpdate("a", metadata={"y": {"q": 2}, "x": None})])
        assert merged.metadata == {"x": None, "y": {"q": 2}}
        assert ids(await store.list_messages("t", where={"x": None})) == ["a"]
        assert ids(await store.list_messages("t", where={"x": 1})) == []

        (replaced,) = await store.update_messages(
            [MessageUpdate("a", metadata={"z": 3}, replace_metadata=True)]
        )
        assert replaced.metadata == {"z": 3}
        assert ids(await store.list_messages("t", where={"x": None})) == []
        assert ids(await store.list_messages("t", where={"z": 3})) == ["a"]

    @case("messages.update.unknown_ids", "4.7.unknown")
    async def test_unknown_ids_are_ignored_and_not_returned(self, store: Store) -> None:
        """Updates of unknown ids create nothing and are left out of the answer."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", "b")

        changed = await store.update_messages([MessageUpdate(n, role="tool") for n in ("b", "x", "a")])

        assert ids(changed) == ["b", "a"]
        assert await store.get_messages(["x"]) == []
        async with unchanged(store):
            assert await store.update_messages([MessageUpdate("x", role="tool")]) == []

    @case("messages.update.same_id_twice", "3.update_messages")
    async def test_two_updates_of_one_message_follow_each_other(self, store: Store) -> None:
        """Several updates of one id are applied in order, and the message is returned once."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", metadata={"n": 0})

        changed = await store.update_messages(
            [MessageUpdate("a", role="tool", metadata={"n": 1}), MessageUpdate("a", metadata={"m": 2})]
        )

        assert [(m.role, m.metadata) for m in changed] == [("tool", {"n": 1, "m": 2})]
        assert await store.get_messages(["a"]) == changed

    @case("messages.update.touches", "4.5.touch")
    async def test_an_update_touches_the_thread_once(self, store: Store) -> None:
        """updated_at of the thread rises by one microsecond for a whole call, where it lies in the future."""
        await filled_thread(store, 3)
        thread = await store.get_thread("thread-1")
        assert thread is not None
        await store.save_thread(replace(thread, updated_at=at(10**9)))

        await store.update_messages([MessageUpdate(f"thread-1-m000{i}", role="x") for i in (1, 2, 3)])

        assert await changed_at(store, "thread-1") == at(10**9) + ONE_MICROSECOND
        assert await count_of(store, "thread-1") == 3

    @case("messages.update.move", "3.update_messages", "4.5.touch")
    async def test_a_message_moves_to_another_thread_of_its_resource(self, store: Store) -> None:
        """A move keeps everything else; both threads are counted and touched."""
        for name in ("t", "u"):
            await store.create_thread("user-1", thread_id=name)
        before, _ = await add(store, "t", "a", "b", metadata={"k": 1})
        times = [await changed_at(store, name) for name in ("t", "u")]

        (moved,) = await store.update_messages([MessageUpdate("a", thread_id="u")])

        assert moved == replace(before, thread_id="u")
        assert ids(await store.list_messages("t")) == ["b"]
        assert ids(await store.list_messages("u", where={"k": 1})) == ["a"]
        assert ids(await store.list_messages("t", where={"k": 1})) == ["b"]
        assert [await count_of(store, name) for name in ("t", "u")] == [1, 1]
        for name, was in zip(("t", "u"), times, strict=True):
            assert await changed_at(store, name) > was

    @case("messages.update.move_keeps_place", "3.update_messages", "4.5.total")
    async def test_a_moved_message_takes_its_place_by_time(self, store: Store) -> None:
        """In its new thread a message stands where its created_at and seq put it."""
        for name in ("t", "u"):
            await store.create_thread("user-1", thread_id=name)
        await add(store, "u", "early", created_at=at(1))
        await add(store, "t", "middle", created_at=at(2))
        await add(store, "u", "late", created_at=at(3))

        await store.update_messages([MessageUpdate("middle", thread_id="u")])

        assert ids(await store.list_messages("u")) == ["early", "middle", "late"]

    @case("messages.update.move_to_unknown", "3.update_messages", "4.6.thread")
    async def test_a_message_cannot_move_to_an_unknown_thread(self, store: Store) -> None:
        """A move to an unknown thread is NotFoundError; nothing of the call is written."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", "b")

        async with unchanged(store):
            with pytest.raises(NotFoundError):
                await store.update_messages(
                    [MessageUpdate("a", role="x"), MessageUpdate("b", thread_id="unknown")]
                )

    @case("messages.update.move_to_other_owner", "3.update_messages", "5.3.writes")
    async def test_a_message_cannot_move_to_another_resource(self, store: Store) -> None:
        """A move to another resource's thread is OwnershipError; nothing of the call is written."""
        await store.create_thread("user-1", thread_id="t")
        await store.create_thread("user-2", thread_id="u")
        await add(store, "t", "a", "b")

        async with unchanged(store):
            with pytest.raises(OwnershipError):
                await store.update_messages([MessageUpdate("a", role="x"), MessageUpdate("b", thread_id="u")])

    @case("messages.update.bad_one_spoils_the_call", "3.validate")
    async def test_one_bad_update_keeps_the_whole_call_out(self, store: Store) -> None:
        """A call with an invalid last update writes nothing."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", "b")

        async with unchanged(store):
            with pytest.raises(InvalidArgumentError):
                await store.update_messages([MessageUpdate("a", role="x"), MessageUpdate("b", role="")])


class TestMessageDelete(AdapterSuite):
    """delete_messages."""

    @case("messages.delete.counts", "3.delete_messages", "4.8.absent", "4.5.touch")
    async def test_deleting_counts_what_there_was(self, store: Store) -> None:
        """delete_messages returns how many there were; unknown and repeated ids are ignored; the thread is
        touched.
        """
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", "b", "c", metadata={"k": 1})
        before = await changed_at(store)

        assert await store.delete_messages(["b", "x", "b", "a"]) == 2

        assert ids(await store.list_messages("t")) == ["c"]
        assert ids(await store.list_messages("t", where={"k": 1})) == ["c"]
        assert await store.get_messages(["a", "b"]) == []
        assert await count_of(store) == 1
        assert await changed_at(store) > before

    @case("messages.delete.absent", "4.8.absent", "7.repeat")
    async def test_deleting_what_is_gone_changes_nothing(self, store: Store) -> None:
        """Deleting again returns 0 and touches nothing."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", "b")
        await store.delete_messages(["a"])

        async with unchanged(store):
            assert await store.delete_messages(["a", "x"]) == 0

    @case("messages.delete.several_threads", "3.delete_messages", "4.5.touch")
    async def test_messages_of_several_threads_are_deleted_in_one_call(self, store: Store) -> None:
        """One call deletes from several threads, of several resources where no scope is given."""
        for name in ("t", "u", "v"):
            await store.create_thread(f"user-{name}", thread_id=name)
            await add(store, name, f"{name}1", f"{name}2")
        untouched = await changed_at(store, "v")

        assert await store.delete_messages(["t1", "u2", "u1"]) == 3

        assert [await count_of(store, name) for name in ("t", "u", "v")] == [1, 0, 2]
        assert await changed_at(store, "v") == untouched

    @case("messages.delete.many", "4.8.size", "3.delete_messages")
    async def test_thousands_of_ids_can_be_deleted_at_once(self, store: Store) -> None:
        """No limit of the database on parameters shows: 5,000 ids in one call."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", *[f"m{i}" for i in range(1000)])

        assert await store.delete_messages([f"m{i}" for i in range(1, 5000)]) == 999

        assert ids(await store.list_messages("t")) == ["m0"]

    @case("messages.delete.id_is_free_again", "3.delete_messages", "4.6.keeps")
    async def test_a_deleted_id_starts_anew(self, store: Store) -> None:
        """A deleted id saved again, in any thread of any resource, is a new message with a new seq."""
        await store.create_thread("user-1", thread_id="t")
        await store.create_thread("user-2", thread_id="u")
        (old,) = await add(store, "t", "a", metadata={"k": 1})
        await store.delete_messages(["a"])

        (new,) = await add(store, "u", "a")

        assert new.seq > old.seq
        assert (new.thread_id, new.resource_id, new.metadata) == ("u", "user-2", {})
        assert ids(await store.list_messages(resource_id="user-2", where={"k": 1})) == []
