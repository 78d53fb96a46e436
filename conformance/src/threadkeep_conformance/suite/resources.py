"""Resources: their own record, guarded updates, and deletion of everything they own."""

from __future__ import annotations

import pytest

from threadkeep import Actor, ConflictError, Resource, Store

from ..cases import case
from .base import AdapterSuite
from .samples import NOON, ONE_MICROSECOND, at, contents_of, filled_thread, unchanged

__all__ = ["TestResources"]

SAVED = Resource(
    id="user-1",
    working_memory="# notes",
    metadata={"a": [1]},
    revision=41,
    created_at=NOON,
    updated_at=at(60),
)


class TestResources(AdapterSuite):
    """get, list, save, update and delete."""

    @case("resources.get.absent", "3.resources")
    async def test_an_absent_resource_reads_as_none(self, store: Store) -> None:
        """get_resource is None where no record was written, also where the resource owns threads."""
        await filled_thread(store, 1)

        assert await store.get_resource("user-1") is None
        assert (await store.list_resources(with_total=True)).total == 0

    @case("resources.update.creates", "3.update_resource", "4.7.revision")
    async def test_updating_an_absent_resource_creates_it(self, store: Store) -> None:
        """update_resource creates; a first working memory makes revision 1, metadata alone leaves 0."""
        with_memory = await store.update_resource("user-1", working_memory="# notes")
        without = await store.update_resource("user-2", metadata={"a": 1})

        assert with_memory == await store.get_resource("user-1")
        assert (with_memory.working_memory, with_memory.metadata, with_memory.revision) == ("# notes", {}, 1)
        assert (without.working_memory, without.metadata, without.revision) == (None, {"a": 1}, 0)
        assert await store.get_resource("user-2") == without

    @case("resources.update.partial", "3.omitted", "4.7.shallow")
    async def test_what_an_update_omits_stays(self, store: Store) -> None:
        """Working memory and metadata are changed apart; metadata is merged, nulls stored, or replaced."""
        first = await store.update_resource("user-1", working_memory="W", metadata={"a": 1, "b": {"x": 1}})

        second = await store.update_resource("user-1", metadata={"b": {"y": 2}, "c": None})
        assert (second.working_memory, second.metadata) == ("W", {"a": 1, "b": {"y": 2}, "c": None})
        third = await store.update_resource("user-1", working_memory="V")
        assert (third.working_memory, third.metadata) == ("V", second.metadata)
        fourth = await store.update_resource("user-1", metadata={"d": 4}, replace_metadata=True)
        assert (fourth.working_memory, fourth.metadata) == ("V", {"d": 4})
        assert fourth.created_at == first.created_at
        assert first.updated_at < second.updated_at < third.updated_at < fourth.updated_at

    @case("resources.update.removes_memory", "3.omitted", "4.7.revision")
    async def test_none_removes_the_working_memory(self, store: Store) -> None:
        """None removes the document, an empty text is one, and both raise the revision."""
        await store.update_resource("user-1", working_memory="W")

        removed = await store.update_resource("user-1", working_memory=None)
        emptied = await store.update_resource("user-1", working_memory="")

        assert (removed.working_memory, removed.revision) == (None, 2)
        assert (emptied.working_memory, emptied.revision) == ("", 3)

    @case("resources.update.revision", "4.7.revision")
    async def test_the_revision_rises_with_every_write_of_the_memory(self, store: Store) -> None:
        """Every working-memory write raises revision, also of an equal text; metadata does not."""
        seen = [(await store.update_resource("user-1", working_memory="same")).revision for _ in range(3)]
        after = await store.update_resource("user-1", metadata={"a": 1})

        assert seen == sorted(set(seen))
        assert after.revision == seen[-1]

    @case("resources.update.if_revision", "4.7.guards", "3.update_resource")
    async def test_a_revision_guards_a_write(self, store: Store) -> None:
        """if_revision equal to the stored one lets the write through; another is ConflictError, nothing
        written.
        """
        first = await store.update_resource("user-1", working_memory="a", if_revision=0)
        second = await store.update_resource("user-1", working_memory="b", if_revision=first.revision)

        for stale in (0, first.revision, second.revision + 1):
            async with unchanged(store):
                with pytest.raises(ConflictError):
                    await store.update_resource(
                        "user-1", working_memory="c", metadata={"x": 1}, if_revision=stale
                    )
        assert (await store.get_resource("user-1")) == second

    @case("resources.update.absent_is_revision_0", "3.update_resource", "4.7.guards")
    async def test_an_absent_resource_has_revision_0(self, store: Store) -> None:
        """Another revision than 0 does not create an absent resource."""
        async with unchanged(store):
            with pytest.raises(ConflictError):
                await store.update_resource("user-1", working_memory="x", if_revision=1)

        assert (await store.update_resource("user-1", metadata={"a": 1}, if_revision=0)).revision == 0

    @case("resources.update.from_the_future", "4.5.touch")
    async def test_updated_at_rises_from_a_time_in_the_future(self, store: Store) -> None:
        """A resource whose updated_at lies ahead of the clock gets one microsecond more."""
        ahead = at(10**9)
        await store.save_resource(Resource(id="user-1", created_at=NOON, updated_at=ahead))

        assert (
            await store.update_resource("user-1", metadata={"a": 1})
        ).updated_at == ahead + ONE_MICROSECOND

    @case("resources.save.keeps_all", "3.imports", "3.resources")
    async def test_saving_keeps_times_and_revision(self, store: Store) -> None:
        """save_resource stores exactly what it is given, replacing what was there, and is safe to repeat."""
        await store.update_resource("user-1", working_memory="old", metadata={"old": 1})

        for _ in range(2):
            assert await store.save_resource(SAVED) == SAVED
            assert await store.get_resource("user-1") == SAVED
        assert (await store.update_resource("user-1", working_memory="x", if_revision=41)).revision == 42

    @case("resources.save.largest_revision", "3.imports", "4.exact")
    async def test_a_large_revision_survives(self, store: Store) -> None:
        """Revisions up to 2**53 - 1 come back exactly and rise by one."""
        saved = Resource(id="user-1", revision=2**53 - 2, created_at=NOON, updated_at=NOON)

        await store.save_resource(saved)

        assert await store.get_resource("user-1") == saved
        assert (await store.update_resource("user-1", working_memory="x")).revision == 2**53 - 1

    @case("resources.list.by_id", "3.resources")
    async def test_resources_are_listed_by_id(self, store: Store) -> None:
        """list_resources gives whole records in the order of their ids, those with a record only."""
        await filled_thread(store, 1, resource_id="owner-only")
        made = {name: await store.update_resource(name, working_memory=name) for name in ("b", "a", "B")}

        page = await store.list_resources(with_total=True)

        assert page.items == [made[name] for name in ("B", "a", "b")]
        assert page.total == 3

    @case("resources.delete.everything", "3.delete_resource", "4.8.whole")
    async def test_deleting_a_resource_deletes_all_it_owns(self, store: Store) -> None:
        """Threads, messages and the record go, and are counted; other resources keep everything."""
        mine = await filled_thread(store, 3)
        await filled_thread(store, 2, thread_id="thread-2")
        await filled_thread(store, 4, thread_id="thread-3", resource_id="user-2")
        await store.update_resource("user-1", working_memory="W")
        await store.update_resource("user-2", working_memory="V")

        gone = await store.delete_resource("user-1")

        assert (gone.threads, gone.messages, gone.resources) == (2, 5, 1)
        left = await contents_of(store)
        assert [thread.id for thread in left.threads] == ["thread-3"]
        assert len(left.messages) == 4
        assert [resource.id for resource in left.resources] == ["user-2"]
        assert await store.get_messages(mine) == []
        assert (
            await store.list_messages(resource_id="user-1", where={"even": True}, with_total=True)
        ).total == 0

    @case("resources.delete.absent", "3.delete_resource", "4.8.absent")
    async def test_deleting_an_absent_resource_is_no_error(self, store: Store) -> None:
        """delete_resource of what is absent, or without a record of its own, counts what there was."""
        await filled_thread(store, 2)

        nothing = await store.delete_resource("unknown")
        threads_only = await store.delete_resource("user-1")
        again = await store.delete_resource("user-1")

        assert (nothing.threads, nothing.messages, nothing.resources) == (0, 0, 0)
        assert (threads_only.threads, threads_only.messages, threads_only.resources) == (1, 2, 0)
        assert (again.threads, again.messages, again.resources) == (0, 0, 0)

    @case("resources.delete.not_the_archive", "3.delete_resource")
    async def test_archive_memories_belong_to_actors(self, store: Store) -> None:
        """A resource owns no archive memories: deleting it leaves those of an actor of the same id."""
        await store.add_memories(Actor("user", "user-1"), ["a fact"])
        await store.update_resource("user-1", metadata={"a": 1})

        await store.delete_resource("user-1")

        assert len(await store.recall_memories(Actor("user", "user-1"))) == 1
