"""Messages: saving, upserting, reading, changing, moving, deleting, and the order they keep."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from msgspec.structs import replace

from threadkeep import (
    ConflictError,
    InvalidArgumentError,
    Message,
    MessageUpdate,
    NewMessage,
    NotFoundError,
    OwnershipError,
    Store,
    Thread,
)

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import NOON, ONE_MICROSECOND, add, at, filled_thread, ids, unchanged

__all__ = [
    "TestMessageDelete",
    "TestMessageOrder",
    "TestMessageSave",
    "TestMessageUpdate",
    "TestMessageUpsert",
]


async def count_of(store: Store, thread_id: str = "t") -> int:
    """The thread's message_count."""
    thread = await store.get_thread(thread_id)
    assert thread is not None
    return thread.message_count


async def changed_at(store: Store, thread_id: str = "t") -> datetime:
    """The thread's updated_at."""
    thread = await store.get_thread(thread_id)
    assert thread is not None
    return thread.updated_at


class TestMessageSave(AdapterSuite):
    """save_messages and get_messages."""

    @case("messages.save.round_trip", "4.exact")
    async def test_a_saved_message_reads_back_as_it_was_returned(self, store: Store) -> None:
        """What save_messages returns is what get_messages and list_messages read."""
        await store.create_thread("user-1", thread_id="t")
        given = NewMessage(
            "t",
            "assistant",
            {"parts": [1, None]},
            id="m",
            type="v2",
            metadata={"k": {"n": [0.5]}},
            created_at=NOON,
        )

        (saved,) = await store.save_messages([given])

        assert await store.get_messages(["m"]) == [saved]
        assert (await store.list_messages("t")).items == [saved]
        assert saved == Message(
            id="m",
            thread_id="t",
            resource_id="user-1",
            role="assistant",
            type="v2",
            content={"parts": [1, None]},
            metadata={"k": {"n": [0.5]}},
            created_at=NOON,
            seq=saved.seq,
        )

    @case("messages.save.defaults", "3.new_message", "4.2.omitted")
    async def test_a_message_needs_thread_role_and_content(self, store: Store) -> None:
        """A message gets a UUIDv7, type "text", empty metadata, its thread's owner, and seq as its time."""
        await store.create_thread("user-1", thread_id="t")
        given = NewMessage("t", "user", "hello")
        assert given.id is not None

        (saved,) = await store.save_messages([given])

        assert (saved.id, UUID(saved.id).version) == (given.id, 7)
        assert (saved.type, saved.metadata, saved.resource_id) == ("text", {}, "user-1")
        assert saved.created_at == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=saved.seq)

    @case("messages.save.again_is_safe", "3.new_message", "7.repeat")
    async def test_saving_the_same_new_message_again_changes_nothing_but_the_touch(
        self, store: Store
    ) -> None:
        """After an unknown outcome the same NewMessage can be saved again: one message, same seq and time."""
        await store.create_thread("user-1", thread_id="t")
        batch = [NewMessage("t", "user", "one"), NewMessage("t", "user", "two")]
        first = await store.save_messages(batch)

        assert await store.save_messages(batch) == first

        assert (await store.list_messages("t")).items == first
        assert await count_of(store) == 2

    @case("messages.save.nothing", "3.empty_list")
    async def test_saving_no_messages_is_no_operation(self, store: Store) -> None:
        """An empty batch returns an empty list and touches nothing."""
        await store.create_thread("user-1", thread_id="t")

        async with unchanged(store):
            assert await store.save_messages([]) == []

    @case("messages.save.any_iterable", "3.validate")
    async def test_a_batch_may_be_any_iterable(self, store: Store) -> None:
        """Tuples and generators of messages are batches; strings and dicts are not."""
        await store.create_thread("user-1", thread_id="t")

        saved = await store.save_messages(NewMessage("t", "user", i, id=f"m{i}") for i in range(3))

        assert ids(saved) == ["m0", "m1", "m2"]
        for wrong in ("m", {"m": 1}, None, 7):
            with pytest.raises(InvalidArgumentError):
                await store.save_messages(wrong)  # pyright: ignore[reportArgumentType]  (on purpose)

    @case("messages.save.several_threads", "4.5.touch", "4.5.batch")
    async def test_one_batch_may_go_to_several_threads(self, store: Store) -> None:
        """A batch to several threads is returned in its order; each thread is counted and touched once."""
        for name in ("a", "b"):
            await store.save_thread(
                Thread(id=name, resource_id=f"user-{name}", created_at=NOON, updated_at=at(10**9))
            )

        saved = await store.save_messages([NewMessage("ba"[i % 2], "user", i, id=f"m{i}") for i in range(5)])

        assert [(m.id, m.thread_id, m.resource_id) for m in saved] == [
            (f"m{i}", "ba"[i % 2], f"user-{'ba'[i % 2]}") for i in range(5)
        ]
        for name, count in (("a", 2), ("b", 3)):
            assert await count_of(store, name) == count
            assert await changed_at(store, name) == at(10**9) + ONE_MICROSECOND

    @case("messages.save.unknown_thread", "4.6.thread", "4.6.nothing")
    async def test_the_thread_must_exist(self, store: Store) -> None:
        """A batch with one message for an unknown thread is NotFoundError; nothing of it is written."""
        await store.create_thread("user-1", thread_id="t")

        async with unchanged(store):
            with pytest.raises(NotFoundError) as absent:
                await store.save_messages([NewMessage("t", "user", 1), NewMessage("unknown", "user", 2)])
        assert (absent.value.kind, absent.value.identifier) == ("thread", "unknown")
        assert await store.get_thread("unknown") is None

    @case("messages.save.owner_is_asserted", "4.6.owner", "4.6.nothing")
    async def test_a_message_of_another_owner_than_its_threads_is_refused(self, store: Store) -> None:
        """resource_id of a message is its thread's owner or OwnershipError; nothing of the batch is
        written.
        """
        await store.create_thread("user-1", thread_id="t")
        await store.save_messages([NewMessage("t", "user", 0, id="right", resource_id="user-1")])

        async with unchanged(store):
            with pytest.raises(OwnershipError):
                await store.save_messages(
                    [NewMessage("t", "user", 1), NewMessage("t", "user", 2, resource_id="user-2")]
                )

    @case("messages.save.bad_one_spoils_the_batch", "3.validate", "4.6.nothing")
    async def test_one_bad_message_keeps_the_whole_batch_out(self, store: Store) -> None:
        """A batch with an invalid last message writes nothing."""
        await store.create_thread("user-1", thread_id="t")

        async with unchanged(store):
            with pytest.raises(InvalidArgumentError):
                await store.save_messages([NewMessage("t", "user", 1), NewMessage("t", "", 2)])

    @case("messages.get.unknown_ids", "3.get_messages")
    async def test_unknown_ids_are_skipped_and_repeated_ones_come_once(self, store: Store) -> None:
        """get_messages returns each known message once, in the total order, whatever the order asked."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "c", "a", "b")

        found = await store.get_messages(["b", "x", "a", "b", "c", "y", "a"])

        assert ids(found) == ["c", "a", "b"]

    @case("messages.get.across_threads", "3.get_messages", "4.5.total")
    async def test_messages_of_several_threads_come_in_one_order(self, store: Store) -> None:
        """get_messages orders by (created_at, seq, id) across threads."""
        for name in ("a", "b"):
            await store.create_thread("user-1", thread_id=name)
        for index in range(6):
            await add(store, "ab"[index % 2], f"m{index}", created_at=at(-(index // 2)))

        assert ids(await store.get_messages([f"m{i}" for i in range(6)])) == [
            "m4",
            "m5",
            "m2",
            "m3",
            "m0",
            "m1",
        ]

    @case("messages.get.one_id", "3.get_messages")
    async def test_a_single_id_may_stand_alone(self, store: Store) -> None:
        """A string is one id, never a list of its letters."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "m", "mm")

        assert ids(await store.get_messages("mm")) == ["mm"]
        assert await store.delete_messages("mm") == 1
        assert ids(await store.list_messages("t")) == ["m"]

    @case("messages.get.many_ids", "3.get_messages")
    async def test_thousands_of_ids_can_be_asked_for_at_once(self, store: Store) -> None:
        """No limit of the database on parameters shows: 5,000 ids, most of them unknown, in one call."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", *[f"m{i:04}" for i in range(1000)])

        found = await store.get_messages([f"m{i:04}" for i in range(5000)])

        assert ids(found) == [f"m{i:04}" for i in range(1000)]

    @case("messages.get.nothing", "3.empty_list")
    async def test_an_empty_list_of_ids_selects_nothing(self, store: Store) -> None:
        """get_messages, delete_messages and update_messages of nothing do nothing."""
        await filled_thread(store, 3)

        async with unchanged(store):
            assert await store.get_messages([]) == []
            assert await store.delete_messages([]) == 0
            assert await store.update_messages([]) == []

    @case("messages.save.large_batch", "4.5.batch")
    async def test_a_large_batch_is_stored_in_its_order(self, store: Store) -> None:
        """2,500 messages in one call keep their order and are all counted."""
        names = await filled_thread(store, 2500, tied=True)

        page = await store.list_messages("thread-1", per_page=None, with_total=True)

        assert ids(page) == names
        assert page.total == 2500
        assert await count_of(store, "thread-1") == 2500

    @case("messages.save.count_and_touch", "4.5.touch")
    async def test_saving_counts_and_touches_the_thread(self, store: Store) -> None:
        """message_count is the number of messages, and updated_at rises with each save, also of known
        messages.
        """
        await store.create_thread("user-1", thread_id="t")
        before = await changed_at(store)
        for count, batch in ((2, ("a", "b")), (3, ("b", "c")), (3, ("a",))):
            await add(store, "t", *batch)
            assert await count_of(store) == count
            after = await changed_at(store)
            assert after > before
            before = after


class TestMessageUpsert(AdapterSuite):
    """Saving a message whose id is known."""

    @case("messages.upsert.keeps_time_and_seq", "4.6.keeps")
    async def test_saving_an_id_again_replaces_all_but_time_and_seq(self, store: Store) -> None:
        """An upsert replaces role, type, content and metadata, and keeps created_at and seq, so the place."""
        await store.create_thread("user-1", thread_id="t")
        first, *_ = await add(store, "t", "a", "b", metadata={"old": 1}, created_at=NOON)

        (again,) = await store.save_messages(
            [NewMessage("t", "tool", {"new": True}, id="a", type="v2", metadata={"n": 2}, created_at=at(999))]
        )

        assert (again.created_at, again.seq) == (first.created_at, first.seq)
        assert (again.role, again.type, again.content, again.metadata) == (
            "tool",
            "v2",
            {"new": True},
            {"n": 2},
        )
        assert (await store.list_messages("t")).items[0] == again
        assert ids(await store.list_messages("t")) == ["a", "b"]

    @case("messages.upsert.refilters", "4.6.keeps", "5.4.first")
    async def test_a_replaced_message_is_found_by_its_new_metadata_only(self, store: Store) -> None:
        """Filters see a message as it is now."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", metadata={"color": "red", "size": 1})
        await add(store, "t", "a", metadata={"color": "blue"})

        assert ids(await store.list_messages("t", where={"color": "blue"})) == ["a"]
        assert ids(await store.list_messages("t", where={"color": "red"})) == []
        assert ids(await store.list_messages("t", where={"size": 1})) == []

    @case("messages.upsert.other_thread", "4.6.elsewhere", "4.6.nothing")
    async def test_a_known_id_in_another_thread_is_a_conflict(self, store: Store) -> None:
        """A known id under another thread of the resource is ConflictError; nothing of the batch is
        written.
        """
        for name in ("t", "u"):
            await store.create_thread("user-1", thread_id=name)
        await add(store, "t", "a")

        async with unchanged(store):
            with pytest.raises(ConflictError):
                await add(store, "u", "new", "a")

    @case("messages.upsert.other_owner", "4.6.owner", "4.6.nothing")
    async def test_a_known_id_of_another_resource_is_refused(self, store: Store) -> None:
        """An id that exists under another resource is OwnershipError; nothing of the batch is written."""
        await store.create_thread("user-1", thread_id="t")
        await store.create_thread("user-2", thread_id="u")
        await add(store, "t", "a")

        async with unchanged(store):
            with pytest.raises(OwnershipError) as refused:
                await add(store, "u", "new", "a")
        assert (refused.value.kind, refused.value.identifier) == ("message", "a")

    @case("messages.upsert.twice_in_one_batch", "4.6.twice")
    async def test_of_two_equal_ids_the_last_content_takes_the_first_place(self, store: Store) -> None:
        """Two equal ids in one batch are one message: last content, first position, returned once."""
        await store.create_thread("user-1", thread_id="t")
        batch = [NewMessage("t", "user", text, id=name) for name, text in (("a", 1), ("b", 2), ("a", 3))]

        saved = await store.save_messages(batch)

        assert [(m.id, m.content) for m in saved] == [("a", 3), ("b", 2)]
        assert (await store.list_messages("t")).items == saved
        assert saved[0].seq < saved[1].seq
        assert await count_of(store) == 2

    @case("messages.upsert.twice_with_times", "4.6.twice")
    async def test_of_two_equal_ids_the_first_time_holds(self, store: Store) -> None:
        """The first of two equal ids gives the time as well as the place."""
        await store.create_thread("user-1", thread_id="t")
        times = [at(5), at(1), at(9)]

        await store.save_messages(
            [NewMessage("t", "user", i, id="aba"[i], created_at=moment) for i, moment in enumerate(times)]
        )

        assert [(m.id, m.content, m.created_at) for m in (await store.list_messages("t")).items] == [
            ("b", 1, at(1)),
            ("a", 2, at(5)),
        ]

    @case("messages.upsert.twice_for_two_threads", "4.6.elsewhere", "4.6.nothing")
    async def test_two_equal_ids_for_two_threads_are_a_conflict(self, store: Store) -> None:
        """One batch cannot put one id into two threads."""
        for name in ("t", "u"):
            await store.create_thread("user-1", thread_id=name)

        async with unchanged(store):
            with pytest.raises(ConflictError):
                await store.save_messages(
                    [NewMessage("t", "user", 1, id="a"), NewMessage("u", "user", 2, id="a")]
                )

    @case("messages.upsert.stored_message", "3.stored_message")
    async def test_a_stored_message_can_be_saved_as_it_is(self, store: Store) -> None:
        """A Message read from a store can be changed and saved, and keeps seq and created_at."""
        await store.create_thread("user-1", thread_id="t")
        first, second = await add(store, "t", "a", "b")

        (again,) = await store.save_messages([replace(first, content="changed")])

        assert again == replace(first, content="changed")
        assert (await store.list_messages("t")).items == [again, second]

    @case("messages.upsert.stored_message_elsewhere", "3.stored_message", "3.imports")
    async def test_a_stored_message_keeps_its_place_in_an_empty_store(self, store: Store) -> None:
        """A Message saved where its id is new keeps its own seq and created_at, so imports keep ties."""
        await store.create_thread("user-1", thread_id="t")
        given = [
            Message(id=n, thread_id="t", resource_id="user-1", role="user", content=n, created_at=NOON, seq=s)
            for n, s in (("b", 7), ("a", 8), ("c", 3))
        ]

        assert await store.save_messages(given) == given

        assert [(m.id, m.seq) for m in (await store.list_messages("t")).items] == [
            ("c", 3),
            ("b", 7),
            ("a", 8),
        ]

    @case("messages.upsert.stored_time_wins", "4.6.keeps")
    async def test_what_is_stored_wins_over_a_stored_message(self, store: Store) -> None:
        """Also a Message with other times, saved over a known id, keeps the stored created_at and seq."""
        await store.create_thread("user-1", thread_id="t")
        (first,) = await add(store, "t", "a")

        (again,) = await store.save_messages([replace(first, created_at=NOON, seq=1, content="new")])

        assert again == replace(first, content="new")


class TestMessageOrder(AdapterSuite):
    """The total order."""

    @case("messages.order.ties_keep_batch_order", "4.5.batch", "4.5.total")
    async def test_ten_messages_of_one_time_keep_the_order_of_their_batch(self, store: Store) -> None:
        """Ten messages with one created_at saved in one batch come in the order they were given."""
        names = await filled_thread(store, 10, tied=True)

        assert ids(await store.list_messages("thread-1")) == names
        assert ids(await store.list_messages("thread-1", order="desc")) == names[::-1]

    @case("messages.order.ties_keep_call_order", "4.5.seq", "4.5.total")
    async def test_ten_messages_of_one_time_keep_the_order_of_their_calls(self, store: Store) -> None:
        """Ten messages with one created_at saved in ten calls come in the order they were saved."""
        await store.create_thread("user-1", thread_id="t")
        names = [f"m{9 - index}" for index in range(10)]
        for name in names:
            await add(store, "t", name, created_at=NOON)

        assert ids(await store.list_messages("t")) == names
        assert ids(await store.list_messages("t", order="desc")) == names[::-1]

    @case("messages.order.time_before_seq", "4.5.total")
    async def test_time_comes_before_the_order_of_saving(self, store: Store) -> None:
        """A message saved later with an earlier time comes earlier."""
        await store.create_thread("user-1", thread_id="t")
        for name, second in (("late", 3), ("early", 1), ("middle", 2)):
            await add(store, "t", name, created_at=at(second))

        assert ids(await store.list_messages("t")) == ["early", "middle", "late"]

    @case("messages.order.microseconds", "4.5.total", "4.2.utc")
    async def test_one_microsecond_decides(self, store: Store) -> None:
        """Messages one microsecond apart are ordered by it, against the order of saving."""
        await store.create_thread("user-1", thread_id="t")
        for name, micros in (("c", 2), ("b", 1), ("a", 0)):
            await add(store, "t", name, created_at=NOON + micros * ONE_MICROSECOND)

        assert ids(await store.list_messages("t")) == ["a", "b", "c"]

    @case("messages.order.id_last", "4.5.total")
    async def test_equal_time_and_seq_are_ordered_by_id(self, store: Store) -> None:
        """With equal created_at and seq (imports), ids decide, code point by code point."""
        await store.create_thread("user-1", thread_id="t")
        names = ["b", "B", "a", "é", "\uffff", "\U00010000", "10", "9"]
        await store.save_messages(
            [
                Message(
                    id=n, thread_id="t", resource_id="user-1", role="user", content=0, created_at=NOON, seq=5
                )
                for n in names
            ]
        )

        assert ids(await store.list_messages("t")) == sorted(names)
        assert ids(await store.list_messages("t", order="desc")) == sorted(names, reverse=True)

    @case("messages.order.seq_rises", "4.5.seq")
    async def test_seq_rises_strictly_over_batches_calls_and_threads(self, store: Store) -> None:
        """Every first save gets a larger seq than all before it."""
        for name in ("t", "u"):
            await store.create_thread("user-1", thread_id=name)
        seen: list[int] = []
        for index in range(6):
            seen += [m.seq for m in await add(store, "tu"[index % 2], f"{index}a", f"{index}b")]

        assert seen == sorted(set(seen))

    @case("messages.order.clock_steps_back", "4.5.seq", "4.2.omitted")
    async def test_a_clock_that_steps_back_reorders_nothing(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the system clock an hour back, new messages still come last, and updated_at still rises."""
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "b")
        before = await changed_at(store)
        now_ns, now = time.time_ns, time.time
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() - 3600 * 10**9)
        monkeypatch.setattr(time, "time", lambda: now() - 3600)

        await add(store, "t", "a")

        assert ids(await store.list_messages("t")) == ["b", "a"]
        assert await changed_at(store) > before
        assert ids(await store.list_messages("t", order="desc", per_page=1)) == ["a"]

    @case("messages.order.last_ten", "3.last")
    async def test_the_last_twenty_of_two_hundred_are_the_newest(self, store: Store) -> None:
        """order="desc" with per_page gives the newest messages, newest first."""
        names = await filled_thread(store, 200)

        assert ids(await store.list_messages("thread-1", order="desc", per_page=20)) == names[:-21:-1]

    @case("messages.order.second_store", "4.shared", "4.5.total")
    async def test_two_stores_in_one_process_share_one_sequence(self, database: Database) -> None:
        """Messages saved in turn through two stores, at one time, come in the order they were saved."""
        stores = [await database.open(), await database.open()]
        await stores[0].create_thread("user-1", thread_id="t")
        names = [f"m{9 - index}" for index in range(10)]
        for index, name in enumerate(names):
            await add(stores[index % 2], "t", name, created_at=NOON)

        for store in stores:
            assert ids(await store.list_messages("t")) == names

    @case("messages.order.backdated_far", "4.5.total", "4.2.years")
    async def test_messages_of_very_different_times_are_ordered(self, store: Store) -> None:
        """Years 1, 1969, 1970 and 9999 are ordered as times, never as text or unsigned numbers."""
        await store.create_thread("user-1", thread_id="t")
        moments = [datetime(year, 1, 1, tzinfo=UTC) for year in (9999, 1970, 1, 1969, 2024, 999)]
        for moment in moments:
            await add(store, "t", str(moment.year), created_at=moment)

        assert ids(await store.list_messages("t")) == ["1", "999", "1969", "1970", "2024", "9999"]


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
