"""Batches that are all or nothing, for every reader; and what several writers do to each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from threadkeep import (
    Capability,
    ConflictError,
    MessageUpdate,
    NewMessage,
    NotFoundError,
    OwnershipError,
    Store,
)

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import add, filled_thread, ids, unchanged

__all__ = ["TestAtomicBatches", "TestConcurrentWrites"]

SIZE = 200


class TestAtomicBatches(AdapterSuite):
    """atomic_batch: save, update, delete, clear, clone and transfer are all or nothing."""

    requires = frozenset({Capability.ATOMIC_BATCH})

    @case("batches.failing_save_leaves_nothing", "6.atomic", "4.6.nothing")
    async def test_a_failing_save_leaves_nothing(self, store: Store) -> None:
        """A large batch whose last message is refused, for every reason there is, writes nothing at all."""
        await store.create_thread("user-1", thread_id="t")
        await store.create_thread("user-1", thread_id="u")
        await store.create_thread("user-2", thread_id="v")
        await add(store, "u", "elsewhere")
        await add(store, "v", "theirs")
        last: list[tuple[type[Exception], NewMessage]] = [
            (NotFoundError, NewMessage("unknown", "user", 1)),
            (ConflictError, NewMessage("t", "user", 1, id="elsewhere")),
            (OwnershipError, NewMessage("t", "user", 1, id="theirs")),
            (OwnershipError, NewMessage("t", "user", 1, resource_id="user-2")),
        ]
        for error, message in last:
            for atomic in (True, None):
                async with unchanged(store):
                    with pytest.raises(error):
                        await store.save_messages(
                            [*[NewMessage("t", "user", i) for i in range(SIZE)], message], atomic=atomic
                        )

    @case("batches.atomic_on_request", "6.atomic")
    async def test_an_atomic_batch_is_saved(self, store: Store) -> None:
        """atomic=True saves as the default does."""
        await store.create_thread("user-1", thread_id="t")

        saved = await store.save_messages(
            [NewMessage("t", "user", i, id=f"m{i}") for i in range(SIZE)], atomic=True
        )

        assert (
            ids(await store.list_messages("t", per_page=None)) == ids(saved) == [f"m{i}" for i in range(SIZE)]
        )

    @case("batches.readers_see_all_or_nothing", "6.atomic")
    async def test_no_reader_sees_part_of_a_write(self, database: Database) -> None:
        """While batches are saved, updated, moved, transferred, cloned and cleared, readers see whole
        states only.
        """
        writer, reader = await database.open(), await database.open()
        await writer.create_thread("user-1", thread_id="t")
        await writer.create_thread("user-1", thread_id="u")
        names = [f"m{index}" for index in range(SIZE)]
        done = asyncio.Event()
        torn: list[str] = []

        async def read() -> None:
            while not done.is_set():
                await _note_torn_states(reader, torn)
                await asyncio.sleep(0)  # an adapter need not give way to other tasks

        async def write() -> None:
            try:
                await add(writer, "t", *names, metadata={"round": 0})
                await writer.update_messages([MessageUpdate(n, metadata={"round": 1}) for n in names])
                await writer.update_messages([MessageUpdate(n, thread_id="u") for n in names])
                await writer.transfer_thread("u", "user-2")
                await writer.transfer_thread("u", "user-1")
                await writer.clone_thread("u", thread_id="copy")
                await writer.clear_thread("u")
                await writer.delete_thread("copy")
            finally:
                done.set()

        await asyncio.gather(read(), read(), write())
        assert torn == []

    @case("batches.failing_update_leaves_nothing", "6.atomic", "5.3.writes")
    async def test_a_failing_update_leaves_nothing(self, store: Store) -> None:
        """An update or delete of many messages whose last is refused changes none."""
        names = await filled_thread(store, SIZE)
        await store.create_thread("user-2", thread_id="v")
        await add(store, "v", "theirs")

        async with unchanged(store):
            with pytest.raises(OwnershipError):
                await store.update_messages(
                    [
                        *[MessageUpdate(n, role="x") for n in names[:-1]],
                        MessageUpdate(names[-1], thread_id="v"),
                    ]
                )
            with pytest.raises(OwnershipError):
                await store.delete_messages([*names, "theirs"], resource_id="user-1")


async def _note_torn_states(reader: Store, torn: list[str]) -> None:
    """Read as a bystander does, and note what shows only a part of a write."""
    for thread in ("t", "u", "copy"):
        page = await reader.list_messages(thread, per_page=None, with_total=True)
        if len(page.items) not in (0, SIZE) or page.total != len(page.items):
            torn.append(f"{thread}: {len(page.items)} of {SIZE} messages, total {page.total}")
        if len({message.resource_id for message in page.items}) > 1:
            torn.append(f"{thread}: messages of two owners")
        if len({str(message.metadata) for message in page.items}) > 1:
            torn.append(f"{thread}: messages before and after an update")
    for owner in ("user-1", "user-2"):
        count = len((await reader.list_messages(resource_id=owner, per_page=None)).items)
        if count % SIZE:
            torn.append(f"{owner}: {count} messages")
    seen = await reader.get_thread("copy")
    empty = seen is not None and (await reader.list_messages("copy", per_page=1)).items == []
    if empty and await reader.get_thread("copy") is not None:  # else it was deleted meanwhile, which is fine
        torn.append("copy: the thread without its messages")
    stored = await reader.get_thread("u")
    if stored is not None and stored.message_count not in (0, SIZE):
        torn.append(f"message_count {stored.message_count}")


class TestConcurrentWrites(AdapterSuite):
    """Several tasks on one or two stores in one process: nothing is lost, nobody waits for good."""

    @case("writes.one_create_wins", "6.conditional", "3.create")
    async def test_of_many_creates_one_wins(self, database: Database) -> None:
        """Of 24 tasks that create one id, exactly one succeeds and the others get AlreadyExistsError."""
        stores = [await database.open(), await database.open()]

        outcomes = await asyncio.gather(
            *[stores[i % 2].create_thread(f"user-{i}", thread_id="t", title=str(i)) for i in range(24)],
            return_exceptions=True,
        )

        winners = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        errors = {type(outcome).__name__ for outcome in outcomes if isinstance(outcome, BaseException)}
        assert (len(winners), errors) == (1, {"AlreadyExistsError"})
        assert await stores[0].get_thread("t") == winners[0]

    @case("writes.ensure_is_atomic", "6.conditional", "3.ensure")
    async def test_of_many_ensures_all_get_the_same_thread(self, database: Database) -> None:
        """24 tasks that ensure one id for one owner all get the same thread."""
        stores = [await database.open(), await database.open()]

        threads = await asyncio.gather(
            *[stores[i % 2].ensure_thread("user-1", thread_id="t", title=str(i)) for i in range(24)]
        )

        assert len({thread.title for thread in threads}) == 1
        assert len({thread.created_at for thread in threads}) == 1

    @case("writes.one_guard_wins", "6.conditional", "4.7.guards")
    async def test_of_many_guarded_writes_one_wins(self, database: Database) -> None:
        """Of 24 tasks guarded by if_title, and of 24 guarded by if_revision, exactly one succeeds each."""
        stores = [await database.open(), await database.open()]
        await stores[0].create_thread("user-1", thread_id="t")
        calls: tuple[Callable[[int], Awaitable[object]], ...] = (
            lambda i: stores[i % 2].update_thread("t", title=f"title {i}", if_title=""),
            lambda i: stores[i % 2].update_resource("user-1", working_memory=str(i), if_revision=0),
        )
        for call in calls:
            outcomes = await asyncio.gather(*[call(i) for i in range(24)], return_exceptions=True)
            errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            assert len(errors) == 23
            assert {type(error) for error in errors} == {ConflictError}

    @case("writes.crossing_batches", "4.5.locks", "4.5.touch")
    async def test_batches_over_the_same_threads_do_not_block_each_other(self, database: Database) -> None:
        """Batches to two threads in opposite order, moves both ways and deletes, all at once, all finish."""
        stores = [await database.open(), await database.open()]
        for name in ("a", "b"):
            await stores[0].create_thread("user-1", thread_id=name)
        await add(stores[0], "a", "moving")

        async def both(index: int) -> None:
            store, order = stores[index % 2], "ab" if index % 2 else "ba"
            await store.save_messages([NewMessage(name, "user", index) for name in order])
            await store.update_messages([MessageUpdate("moving", thread_id=order[0])])

        await asyncio.wait_for(asyncio.gather(*[both(index) for index in range(20)]), 60)

        counts: list[int] = []
        for name in ("a", "b"):
            thread = await stores[0].get_thread(name)
            page = await stores[0].list_messages(name, per_page=None, with_total=True)
            assert thread is not None
            assert thread.message_count == page.total == len(page.items)
            counts.append(thread.message_count)
        assert sum(counts) == 41

    @case(
        "writes.save_against_delete",
        "6.conditional",
        "4.6.thread",
        requires=frozenset({Capability.ATOMIC_BATCH}),
    )
    async def test_a_save_against_a_delete_leaves_no_orphan(self, database: Database) -> None:
        """Saves race with the deletion of their thread: each is stored before it or is NotFoundError;
        nothing is left.
        """
        stores = [await database.open(), await database.open()]
        for attempt in range(5):
            await stores[0].create_thread("user-1", thread_id="t")
            outcomes = await asyncio.gather(
                *[add(stores[i % 2], "t", f"m{attempt}-{i}") for i in range(6)],
                stores[1].delete_thread("t"),
                *[add(stores[i % 2], "t", f"n{attempt}-{i}") for i in range(6)],
                return_exceptions=True,
            )
            errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            assert {type(error) for error in errors} <= {NotFoundError}
            assert (await stores[0].list_messages(resource_id="user-1", with_total=True)).total == 0
            assert await stores[0].get_messages([f"{c}{attempt}-{i}" for c in "mn" for i in range(6)]) == []

    @case("writes.one_id_upserted_by_many", "6.conditional", "4.6.keeps")
    async def test_of_many_first_saves_of_one_id_one_place_is_kept(self, database: Database) -> None:
        """24 tasks save one id at once: one message, one seq and created_at, and its content is one of
        theirs whole.
        """
        stores = [await database.open(), await database.open()]
        await stores[0].create_thread("user-1", thread_id="t")

        saved = await asyncio.gather(
            *[
                stores[i % 2].save_messages(
                    [NewMessage("t", "user", i, id="m", metadata={"n": i, f"k{i}": i})]
                )
                for i in range(24)
            ]
        )

        (stored,) = (await stores[0].list_messages("t", with_total=True)).items
        assert {(m.seq, m.created_at) for (m,) in saved} == {(stored.seq, stored.created_at)}
        assert stored.metadata == {"n": stored.content, f"k{stored.content}": stored.content}
        found = [i for i in range(24) if (await stores[0].list_messages("t", where={f"k{i}": i})).items]
        assert found == [stored.content]
