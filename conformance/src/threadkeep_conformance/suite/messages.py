"""Messages: saving, upserting, reading, and the order they keep."""

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
    NewMessage,
    NotFoundError,
    OwnershipError,
    Store,
    Thread,
)

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import NOON, ONE_MICROSECOND, add, at, changed_at, count_of, filled_thread, ids, unchanged

__all__ = ["TestMessageOrder", "TestMessageSave", "TestMessageUpsert"]


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
