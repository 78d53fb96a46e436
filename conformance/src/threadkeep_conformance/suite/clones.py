"""Clones of threads, and the helpers that follow them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from threadkeep import (
    AlreadyExistsError,
    InvalidArgumentError,
    Message,
    MessageUpdate,
    NotFoundError,
    OwnershipError,
    Store,
    Thread,
    TimeRange,
)

from ..cases import case
from .base import AdapterSuite
from .samples import NOON, add, at, filled_thread, ids, unchanged

__all__ = ["TestClone", "TestCloneHelpers"]


async def listed(store: Store, thread_id: str) -> list[Message]:
    """All messages of a thread."""
    return (await store.list_messages(thread_id, per_page=None)).items


class TestClone(AdapterSuite):
    """clone_thread."""

    @case("clones.copies_messages", "4.9.copy")
    async def test_a_clone_has_copies_of_all_messages_in_order(self, store: Store) -> None:
        """Copies have new UUIDs, the source's created_at, order, role, type, content and metadata, and
        rising seq.
        """
        names = await filled_thread(store, 12, tied=True)
        source = await listed(store, "thread-1")

        clone = await store.clone_thread("thread-1", thread_id="copy")

        copies = await listed(store, "copy")
        assert list(clone.id_map.items()) == list(zip(names, ids(copies), strict=True))
        assert all(str(UUID(copy.id)) == copy.id for copy in copies)
        assert not set(ids(copies)) & set(names)
        assert [(c.role, c.type, c.content, c.metadata, c.created_at) for c in copies] == [
            (m.role, m.type, m.content, m.metadata, m.created_at) for m in source
        ]
        assert {(c.thread_id, c.resource_id) for c in copies} == {("copy", "user-1")}
        assert [c.seq for c in copies] == list(range(copies[0].seq, copies[0].seq + 12))
        assert await listed(store, "thread-1") == source

    @case("clones.backdated", "4.9.copy", "4.9.limit")
    async def test_a_clone_follows_the_order_of_time_not_of_arrival(self, store: Store) -> None:
        """Of messages that were saved newest first, id_map, seq, lastMessageId and message_limit follow
        their times.
        """
        await store.create_thread("user-1", thread_id="thread-1")
        names = ["oldest", "older", "newer", "newest"]
        for index in reversed(range(4)):
            await add(store, "thread-1", names[index], created_at=at(index))

        whole = await store.clone_thread("thread-1", return_messages=True)
        newest = await store.clone_thread("thread-1", message_limit=2)

        copies = await listed(store, whole.thread.id)
        assert list(whole.id_map.items()) == list(zip(names, ids(copies), strict=True))
        assert whole.messages == copies
        assert [copy.seq for copy in copies] == list(range(copies[0].seq, copies[0].seq + 4))
        assert whole.thread.metadata["clone"]["lastMessageId"] == "newest"
        assert list(newest.id_map) == ["newer", "newest"]

    @case("clones.seq_is_new", "4.9.copy", "4.5.seq")
    async def test_what_is_saved_after_a_clone_comes_after_it(self, store: Store) -> None:
        """A message of the same time saved to a clone afterwards comes last: copies took seq values of
        their own.
        """
        await filled_thread(store, 20, tied=True)
        clone = await store.clone_thread("thread-1")

        (new,) = await add(store, clone.thread.id, "new", created_at=NOON)

        found = await listed(store, clone.thread.id)
        assert found[-1] == new
        assert [message.seq for message in found] == sorted({message.seq for message in found})

    @case("clones.thread_record", "4.9.title", "4.9.metadata", "4.9.memory")
    async def test_the_clone_is_a_thread_of_its_own(self, store: Store) -> None:
        """Title falls back to "Clone of ...", working memory is copied, source metadata is not, times are
        now.
        """
        await filled_thread(store, 3)
        source = await store.update_thread(
            "thread-1", title="Trip", metadata={"a": 1}, working_memory="# notes"
        )

        clone = (await store.clone_thread("thread-1")).thread

        assert await store.get_thread(clone.id) == clone
        assert UUID(clone.id).version == 7
        assert (clone.resource_id, clone.title, clone.working_memory) == (
            "user-1",
            "Clone of Trip",
            "# notes",
        )
        assert list(clone.metadata) == ["clone"]
        assert clone.message_count == 3
        assert clone.created_at == clone.updated_at > source.updated_at
        assert await store.get_thread("thread-1") == source

    @case("clones.metadata", "4.9.metadata")
    async def test_clone_metadata_names_the_source(self, store: Store) -> None:
        """metadata.clone holds exactly sourceThreadId, clonedAt (ISO, UTC) and lastMessageId; given
        metadata stays.
        """
        names = await filled_thread(store, 3)

        clone = (await store.clone_thread("thread-1", metadata={"b": 2, "clone": "mine", "c": None})).thread

        assert {key: value for key, value in clone.metadata.items() if key != "clone"} == {"b": 2, "c": None}
        origin = clone.metadata["clone"]
        assert set(origin) == {"sourceThreadId", "clonedAt", "lastMessageId"}
        assert (origin["sourceThreadId"], origin["lastMessageId"]) == ("thread-1", names[-1])
        assert datetime.fromisoformat(origin["clonedAt"]) == clone.created_at
        assert ids(await store.list_threads(where={"b": 2})) == [clone.id]

    @case("clones.long_title", "4.9.title", "4.1.length")
    async def test_a_fallback_title_stays_within_its_limit(self, store: Store) -> None:
        """The clone of a thread whose title has 1,000 characters has a title of at most 1,000."""
        await store.create_thread("user-1", thread_id="t", title="x" * 1000)

        clone = (await store.clone_thread("t")).thread

        assert clone.title.startswith("Clone of xxx")
        assert len(clone.title) == 1000

    @case("clones.options", "4.9.title", "4.9.metadata")
    async def test_id_owner_and_title_can_be_given(self, store: Store) -> None:
        """thread_id, to_resource_id and title are taken as they are; an empty title is a title."""
        await filled_thread(store, 2)
        await store.update_thread("thread-1", title="Trip")

        clone = await store.clone_thread("thread-1", thread_id="copy", to_resource_id="user-2", title="")

        assert (clone.thread.id, clone.thread.resource_id, clone.thread.title) == ("copy", "user-2", "")
        assert ids(await store.list_messages(resource_id="user-2")) == list(clone.id_map.values())
        assert len((await store.list_messages(resource_id="user-1")).items) == 2

    @case("clones.limit", "4.9.limit")
    async def test_a_limit_keeps_the_newest(self, store: Store) -> None:
        """message_limit keeps the newest N, in their order; 0 keeps none; more than there are keeps all."""
        names = await filled_thread(store, 6, tied=True)

        for limit, kept in ((2, names[4:]), (0, []), (6, names), (99, names)):
            clone = await store.clone_thread("thread-1", message_limit=limit)
            assert list(clone.id_map) == kept
            assert clone.thread.message_count == len(kept)
            assert clone.thread.metadata["clone"]["lastMessageId"] == (kept[-1] if kept else None)

    @case("clones.filters", "4.9.limit", "5.2.dates", "3.empty_list")
    async def test_filters_choose_the_messages_and_the_limit_comes_last(self, store: Store) -> None:
        """created and message_ids choose, both must hold, unknown ids are skipped, [] copies none; then the
        limit.
        """
        names = await filled_thread(store, 8)
        other = await filled_thread(store, 2, thread_id="thread-2")
        chosen = [names[6], "unknown", names[1], names[3], other[0], names[1]]
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({"created": TimeRange(at(2), at(4))}, names[2:5]),
            ({"created": TimeRange(at(2), at(4), start_exclusive=True), "message_limit": 1}, names[4:5]),
            ({"message_ids": chosen}, [names[1], names[3], names[6]]),
            ({"message_ids": chosen, "message_limit": 2}, [names[3], names[6]]),
            ({"message_ids": chosen, "created": TimeRange(end=at(3))}, [names[1], names[3]]),
            ({"message_ids": []}, []),
        ]
        for options, copied in cases:
            clone = await store.clone_thread("thread-1", **options)
            assert list(clone.id_map) == copied
            assert ids(await store.list_messages(clone.thread.id)) == list(clone.id_map.values())

    @case("clones.empty", "4.9.copy", "4.9.metadata")
    async def test_an_empty_thread_can_be_cloned(self, store: Store) -> None:
        """The clone of an empty thread is empty, with lastMessageId null."""
        await store.create_thread("user-1", thread_id="t")

        clone = await store.clone_thread("t", return_messages=True)

        assert (clone.id_map, clone.messages, clone.thread.message_count) == ({}, [], 0)
        assert clone.thread.metadata["clone"]["lastMessageId"] is None

    @case("clones.return_messages", "4.9.bodies")
    async def test_messages_are_returned_on_request_only(self, store: Store) -> None:
        """return_messages gives the copies as they are read; without it messages is None."""
        await filled_thread(store, 4)

        assert (await store.clone_thread("thread-1")).messages is None
        clone = await store.clone_thread("thread-1", return_messages=True)
        assert clone.messages == await listed(store, clone.thread.id)

    @case("clones.is_searchable", "4.9.copy", "5.4.first")
    async def test_copies_are_found_by_filters_dates_and_cursors(self, store: Store) -> None:
        """A clone answers every query as its source does."""
        await filled_thread(store, 10)
        clone = await store.clone_thread("thread-1", thread_id="copy")

        for query in (
            {"where": {"even": True}},
            {"where": {"index": 7}},
            {"created": TimeRange(at(3), at(5))},
        ):
            source = await store.list_messages("thread-1", with_total=True, **query)  # pyright: ignore[reportArgumentType]  (each is legal)
            copy = await store.list_messages("copy", with_total=True, **query)  # pyright: ignore[reportArgumentType]  (each is legal)
            assert ids(copy) == [clone.id_map[name] for name in ids(source)]
            assert copy.total == source.total
        assert [m.id async for m in store.iter_messages("copy", per_page=3)] == list(clone.id_map.values())

    @case("clones.is_independent", "4.9.copy")
    async def test_a_clone_lives_on_without_its_source(self, store: Store) -> None:
        """Changes to the source, its deletion included, do not reach the clone, and the other way round."""
        await filled_thread(store, 3)
        clone = await store.clone_thread("thread-1")
        copies = await listed(store, clone.thread.id)

        await store.clear_thread("thread-1")
        await store.delete_thread("thread-1")

        assert await listed(store, clone.thread.id) == copies
        assert len((await store.list_messages(clone.thread.id, where={"even": True})).items) == 2

    @case("clones.large", "4.9.copy", "4.5.batch")
    async def test_a_thread_of_thousands_of_messages_is_cloned_exactly(self, store: Store) -> None:
        """2,500 messages of one time keep their order."""
        names = await filled_thread(store, 2500, tied=True)

        clone = await store.clone_thread("thread-1")

        assert list(clone.id_map) == names
        assert ids(await store.list_messages(clone.thread.id, per_page=None)) == list(clone.id_map.values())
        assert clone.thread.message_count == 2500

    @case("clones.exact_bodies", "4.9.copy", "4.exact")
    async def test_copies_are_exact(self, store: Store) -> None:
        """NUL and lone surrogates in content, big integers, and extreme metadata survive a clone."""
        await store.create_thread("user-1", thread_id="t")
        content = {"a\0": ["\ud800", 10**40, -0.0, 1.0, None], "é": "\0"}
        await add(store, "t", "m", metadata={"n": 1e16, "i": 2**53 + 1, "z": None})
        await store.update_messages([MessageUpdate("m", content=content)])

        clone = await store.clone_thread("t", return_messages=True)

        assert clone.messages is not None
        source = (await store.get_messages(["m"]))[0]
        assert repr(clone.messages[0].content) == repr(source.content) == repr(content)
        assert repr(clone.messages[0].metadata) == repr({"n": 1e16, "i": 2**53 + 1, "z": None})

    @case("clones.missing_source", "4.9.errors")
    async def test_a_missing_source_is_not_found(self, store: Store) -> None:
        """A missing source is NotFoundError naming it, also where the new id is taken; nothing is written."""
        await store.create_thread("user-1", thread_id="taken")

        async with unchanged(store):
            with pytest.raises(NotFoundError) as absent:
                await store.clone_thread("unknown", thread_id="taken")
        assert (absent.value.kind, absent.value.identifier) == ("thread", "unknown")

    @case("clones.taken_id", "4.9.errors", "7.repeat")
    async def test_a_taken_id_is_an_error(self, store: Store) -> None:
        """A taken id is AlreadyExistsError, the source's own id and another owner's too; nothing is
        written.
        """
        await filled_thread(store, 2)
        await store.create_thread("user-2", thread_id="theirs")

        for taken in ("thread-1", "theirs"):
            async with unchanged(store):
                with pytest.raises(AlreadyExistsError) as error:
                    await store.clone_thread("thread-1", thread_id=taken)
            assert error.value.identifier == taken

    @case("clones.another_owner", "4.9.errors", "5.3.writes")
    async def test_another_resources_source_is_refused(self, store: Store) -> None:
        """Another resource's source is OwnershipError where a scope is given; nothing is written."""
        await filled_thread(store, 2)

        async with unchanged(store):
            with pytest.raises(OwnershipError):
                await store.clone_thread("thread-1", resource_id="user-2", to_resource_id="user-2")
        assert (await store.clone_thread("thread-1", to_resource_id="user-2")).thread.resource_id == "user-2"

    @case("clones.invalid", "3.validate")
    async def test_arguments_that_break_a_rule_are_refused(self, store: Store) -> None:
        """Bad ids, titles, limits, metadata, ranges and message ids are errors; nothing is written."""
        await filled_thread(store, 2)
        wrong: list[dict[str, Any]] = [
            {"thread_id": ""}, {"thread_id": "x" * 256}, {"to_resource_id": ""}, {"title": "x" * 1001},
            {"title": 7}, {"message_limit": -1}, {"message_limit": 1.5}, {"message_limit": True},
            {"message_limit": 2**63}, {"metadata": []}, {"metadata": {"a": float("nan")}},
            {"created": (NOON, NOON)}, {"message_ids": [""]}, {"message_ids": [7]},
            {"message_ids": {"$ne": ""}}, {"return_messages": 1}, {"resource_id": 7},
            {"created": TimeRange(start=NOON.replace(tzinfo=None))}, {"metadata": {"a": "x" * 65 * 1024}},
        ]  # fmt: skip
        async with unchanged(store):
            for options in wrong:
                with pytest.raises(InvalidArgumentError):
                    await store.clone_thread("thread-1", **options)

    @case("clones.metadata_limit", "4.4.merged", "4.9.metadata")
    async def test_the_limit_holds_with_the_clone_key(self, store: Store) -> None:
        """Metadata that is within 64 KiB alone and beyond with metadata.clone is refused; nothing is
        written.
        """
        await filled_thread(store, 2)
        almost = {"a": "x" * (64 * 1024 - 10)}

        async with unchanged(store):
            with pytest.raises(InvalidArgumentError):
                await store.clone_thread("thread-1", metadata=almost)


class TestCloneHelpers(AdapterSuite):
    """get_clone_metadata, is_clone, get_source_thread, list_clones, get_clone_history."""

    @case("clones.helpers.metadata", "4.9.helpers")
    async def test_a_clone_knows_its_origin(self, store: Store) -> None:
        """get_clone_metadata gives source, time and last message; is_clone tells clones from others."""
        names = await filled_thread(store, 2)
        clone = (await store.clone_thread("thread-1")).thread
        source = await store.get_thread("thread-1")
        assert source is not None

        origin = store.get_clone_metadata(clone)

        assert origin is not None
        assert (origin.source_thread_id, origin.last_message_id) == ("thread-1", names[-1])
        assert origin.cloned_at == clone.created_at
        assert origin.cloned_at.tzinfo is not None
        assert (store.is_clone(clone), store.is_clone(source)) == (True, False)
        assert store.get_clone_metadata(source) is None

    @case("clones.helpers.no_clone", "4.9.helpers")
    async def test_other_metadata_under_clone_makes_no_clone(self, store: Store) -> None:
        """Metadata whose "clone" is no clone record is no clone, and breaks no helper."""
        wrong: list[Any] = [
            True, 1, "x", [], {}, {"sourceThreadId": "a"},
            {"sourceThreadId": 1, "clonedAt": "x", "lastMessageId": None},
            {"sourceThreadId": "a", "clonedAt": "yesterday", "lastMessageId": None},
            {"sourceThreadId": "a", "clonedAt": "2024-01-01T00:00:00", "lastMessageId": None},
            {"sourceThreadId": "a", "clonedAt": "2024-01-01T00:00:00Z", "lastMessageId": 7},
        ]  # fmt: skip
        for index, value in enumerate(wrong):
            thread = await store.create_thread("user-1", thread_id=f"t{index}", metadata={"clone": value})
            assert not store.is_clone(thread)
            assert await store.get_source_thread(thread.id) is None
            assert ids(await store.get_clone_history(thread.id)) == [thread.id]
        assert await store.list_clones("a") == []

    @case("clones.helpers.source", "4.9.helpers")
    async def test_the_source_is_found_while_it_exists(self, store: Store) -> None:
        """get_source_thread gives the source thread; None for no clone, an unknown id, or a source that is
        gone.
        """
        await filled_thread(store, 1)
        clone = (await store.clone_thread("thread-1")).thread

        assert await store.get_source_thread(clone.id) == await store.get_thread("thread-1")
        assert await store.get_source_thread("thread-1") is None
        assert await store.get_source_thread("unknown") is None
        await store.delete_thread("thread-1")
        assert await store.get_source_thread(clone.id) is None

    @case("clones.helpers.list", "4.9.helpers")
    async def test_all_direct_clones_are_listed_oldest_first(self, store: Store) -> None:
        """list_clones gives the threads cloned from this one, of all owners, oldest first, no clones of
        clones.
        """
        await filled_thread(store, 1)
        await filled_thread(store, 1, thread_id="thread-2")
        first = await store.clone_thread("thread-1", thread_id="z")
        await store.clone_thread("thread-1", thread_id="a", to_resource_id="user-2")
        await store.clone_thread("thread-2", thread_id="other")
        await store.clone_thread("z", thread_id="grandchild")

        assert ids(await store.list_clones("thread-1")) == ["z", "a"]
        assert ids(await store.list_clones("z")) == ["grandchild"]
        assert await store.list_clones("a") == []
        assert await store.list_clones("unknown") == []
        assert (await store.list_clones("thread-1"))[0] == first.thread

    @case("clones.helpers.history", "4.9.helpers")
    async def test_the_history_goes_back_to_the_first_ancestor(self, store: Store) -> None:
        """get_clone_history gives the first ancestor first and the thread itself last; of an unknown thread
        nothing.
        """
        await filled_thread(store, 1)
        await store.clone_thread("thread-1", thread_id="b")
        await store.clone_thread("b", thread_id="c")

        assert ids(await store.get_clone_history("c")) == ["thread-1", "b", "c"]
        assert ids(await store.get_clone_history("thread-1")) == ["thread-1"]
        assert await store.get_clone_history("unknown") == []

    @case("clones.helpers.history_stops", "4.9.helpers")
    async def test_the_history_stops_at_a_missing_ancestor_and_at_a_cycle(self, store: Store) -> None:
        """A missing ancestor ends the history; threads that name each other as source do not loop."""
        await filled_thread(store, 1)
        await store.clone_thread("thread-1", thread_id="b")
        await store.clone_thread("b", thread_id="c")
        await store.delete_thread("b")
        assert ids(await store.get_clone_history("c")) == ["c"]

        for name, origin in (("x", "y"), ("y", "x"), ("self", "self")):
            clone = {"sourceThreadId": origin, "clonedAt": "2024-01-01T00:00:00Z", "lastMessageId": None}
            moment = datetime(2024, 1, 1, tzinfo=UTC)
            await store.save_thread(
                Thread(
                    id=name, resource_id="r", metadata={"clone": clone}, created_at=moment, updated_at=moment
                )
            )
        assert ids(await store.get_clone_history("x")) == ["y", "x"]
        assert ids(await store.get_clone_history("self")) == ["self"]

    @case("clones.helpers.invalid", "3.validate")
    async def test_helpers_check_their_arguments(self, store: Store) -> None:
        """An id that breaks a rule, and something that is no thread, are errors."""
        bad: Any = {"$ne": ""}
        for helper in (store.get_source_thread, store.list_clones, store.get_clone_history):
            for value in (bad, "", "x" * 256):
                with pytest.raises(InvalidArgumentError):
                    await helper(value)
        with pytest.raises(InvalidArgumentError):
            store.is_clone(bad)
