"""Opening, sharing, closing, and where a store may be used."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import threading
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import threadkeep
from threadkeep import (
    Actor,
    Message,
    NewMessage,
    SchemaVersionError,
    Store,
    StoreClosedError,
    Thread,
    WrongLoopError,
)

from ..cases import case
from ..databases import Database
from ..probe import Raw
from .base import AdapterSuite
from .samples import NOON, add, filled_thread, ids, line_of, raised

__all__ = ["TestClosing", "TestLoops", "TestOpening", "TestSyncStore"]

TIMEOUT_S = 20

OPERATIONS: tuple[Callable[[Store], Awaitable[object]], ...] = (
    lambda s: s.create_thread("r"),
    lambda s: s.ensure_thread("r", thread_id="t"),
    lambda s: s.save_thread(Thread(id="t", resource_id="r", created_at=NOON, updated_at=NOON)),
    lambda s: s.get_thread("t"),
    lambda s: s.list_threads(),
    lambda s: s.list_threads(per_page=0),
    lambda s: s.update_thread("t", title="x"),
    lambda s: s.delete_thread("t"),
    lambda s: s.clear_thread("t"),
    lambda s: s.transfer_thread("t", "r"),
    lambda s: s.clone_thread("t"),
    lambda s: s.get_source_thread("t"),
    lambda s: s.list_clones("t"),
    lambda s: s.get_clone_history("t"),
    lambda s: anext(s.iter_threads()),
    lambda s: s.save_messages([NewMessage("t", "user", 1)]),
    lambda s: s.save_messages([]),
    lambda s: s.get_messages(["m"]),
    lambda s: s.get_messages([]),
    lambda s: s.list_messages("t"),
    lambda s: s.list_messages("t", per_page=0),
    lambda s: s.list_messages([]),
    lambda s: s.update_messages([]),
    lambda s: s.delete_messages(["m"]),
    lambda s: s.delete_messages([]),
    lambda s: anext(s.iter_messages("t")),
    lambda s: s.explain_messages("t"),
    lambda s: s.explain_threads(),
    lambda s: s.get_resource("r"),
    lambda s: s.list_resources(),
    lambda s: s.update_resource("r"),
    lambda s: s.merge_working_memory("r", {}),
    lambda s: s.delete_resource("r"),
    lambda s: s.add_memories(Actor("shared"), ["x"]),
    lambda s: s.add_memories(Actor("shared"), []),
    lambda s: s.recall_memories(Actor("shared")),
    lambda s: s.list_memories(),
    lambda s: s.pin_memory(1),
    lambda s: s.delete_memories(Actor("shared")),
    lambda s: s.delete_memories(Actor("shared"), []),
    lambda s: s.migrate(),
)
"""Every operation with arguments that are legal."""


class TestOpening(AdapterSuite):
    """open, migrate and sharing."""

    @case("open.awaited_or_with", "3.open")
    async def test_a_store_can_be_awaited_or_used_with_async_with(self, database: Database) -> None:
        """open(url) can be awaited and closed by hand, or used as a context manager that closes it."""
        by_hand = await threadkeep.open(database.url)
        await by_hand.create_thread("r", thread_id="t")
        async with threadkeep.open(database.url) as inside:
            assert (await inside.get_thread("t")) is not None
        with pytest.raises(StoreClosedError):
            await inside.get_thread("t")
        async with by_hand as same:
            assert same is by_hand
        with pytest.raises(StoreClosedError):
            await by_hand.get_thread("t")

    @case("open.shared", "4.shared")
    async def test_what_one_store_writes_every_other_reads(self, database: Database) -> None:
        """Two stores on one database see each other's finished writes at once."""
        first, second = await database.open(), await database.open()
        for writer, reader, name in ((first, second, "a"), (second, first, "b")):
            await writer.create_thread("r", thread_id=name)
            await add(writer, name, f"m-{name}")
            assert (await reader.get_thread(name)) == (await writer.get_thread(name))
            assert ids(await reader.list_messages(name)) == [f"m-{name}"]
            await writer.update_thread(name, title="changed")
            seen = await reader.get_thread(name)
            assert seen is not None
            assert seen.title == "changed"
            await writer.delete_messages([f"m-{name}"])
            assert ids(await reader.list_messages(name)) == []

    @case("open.persists", "4.shared", "3.schema")
    async def test_opening_again_finds_everything(self, database: Database) -> None:
        """A store opened on a database that has data finds all of it, migrates nothing away, and goes on."""
        first = await database.open()
        names = await filled_thread(first, 5)
        before = await first.list_messages("thread-1", where={"even": True}, with_total=True)
        second = await database.open()
        await first.close()

        third = await database.open()
        assert await third.list_messages("thread-1", where={"even": True}, with_total=True) == before
        (new,) = await add(second, "thread-1", "new", created_at=before.items[-1].created_at)
        assert new.seq > max(message.seq for message in before.items)
        assert ids(await third.list_messages("thread-1")) == [*names, "new"]

    @case("open.at_once", "3.schema")
    async def test_many_may_open_a_new_database_at_once(self, database: Database) -> None:
        """Eight tasks that open a new database at the same time all succeed, and share it."""
        stores = await asyncio.gather(*[database.open() for _ in range(8)])

        for index, store in enumerate(stores):
            await store.create_thread("r", thread_id=f"t{index}")
        assert len((await stores[0].list_threads()).items) == 8

    @case("open.migrate_again", "3.schema")
    async def test_migrating_again_changes_nothing(self, store: Store) -> None:
        """migrate() on a current schema keeps everything, and may be called by several at once."""
        names = await filled_thread(store, 3)

        await asyncio.gather(store.migrate(), store.migrate(), store.list_messages("thread-1"))

        assert ids(await store.list_messages("thread-1", where={"even": True})) == names[::2]

    @case("open.outdated", "3.outdated")
    async def test_an_outdated_schema_is_refused_without_migration(self, database: Database) -> None:
        """migrate=False on an empty database is SchemaVersionError naming both versions (or there is no
        schema).
        """
        refused: SchemaVersionError | None = None
        try:
            await database.open(migrate=False)
        except SchemaVersionError as error:
            refused = error
        if refused is not None:
            assert refused.found < refused.supported
            assert str(refused.found) in str(refused)
            assert str(refused.supported) in str(refused)
        await database.open()
        store = await database.open(migrate=False)
        await store.create_thread("r", thread_id="t")

    @case("open.newer", "3.newer")
    async def test_a_newer_schema_is_refused_and_not_touched(self, database: Database) -> None:
        """A schema version from the future is SchemaVersionError for open and migrate; with it set back,
        all is there.
        """
        raw = self.offered(Raw)
        store = await database.open()
        await filled_thread(store, 3)
        current = await raw.set_schema_version(database.url, 9999)
        for migrate in (True, False):
            with pytest.raises(SchemaVersionError) as refused:
                await database.open(migrate=migrate)
            assert (refused.value.found, refused.value.supported) == (9999, current)
        with pytest.raises(SchemaVersionError):
            await store.migrate()

        await raw.set_schema_version(database.url, current)
        assert len((await (await database.open()).list_messages("thread-1")).items) == 3


class TestClosing(AdapterSuite):
    """close."""

    @case("close.idempotent", "3.closed")
    async def test_closing_twice_is_no_error(self, store: Store) -> None:
        """close() may be called again, and at once by several."""
        await store.close()
        await store.close()
        await asyncio.gather(store.close(), store.close())

    @case("close.every_call", "3.closed")
    async def test_after_close_every_call_says_so(self, store: Store) -> None:
        """After close() every operation, those with nothing to do too, raises StoreClosedError."""
        await store.close()
        working = [line_of(call) for call in OPERATIONS if not await raised(StoreClosedError, call, store)]
        assert working == [], "the operations on these lines worked"
        assert len(store.capabilities) > 0

    @case("close.waits", "3.closed")
    async def test_closing_lets_running_calls_finish(self, database: Database) -> None:
        """Calls that were running when close() was called finish or are refused; what was acknowledged is
        there.
        """
        store, other = await database.open(), await database.open()
        await store.create_thread("r", thread_id="t")
        calls = [
            asyncio.ensure_future(store.save_messages([NewMessage("t", "user", i, id=f"m{i}")]))
            for i in range(10)
        ]
        await asyncio.sleep(0)

        await store.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)

        saved = {m.id for outcome in outcomes if not isinstance(outcome, BaseException) for m in outcome}
        assert all(isinstance(o, StoreClosedError) for o in outcomes if isinstance(o, BaseException))
        assert saved <= set(ids(await other.list_messages("t")))

    @case("close.others_go_on", "3.closed", "4.shared")
    async def test_closing_one_store_leaves_the_others(self, database: Database) -> None:
        """Another store on the same database works on."""
        first, second = await database.open(), await database.open()
        await first.create_thread("r", thread_id="t")
        await first.close()

        await add(second, "t", "m")
        assert ids(await second.list_messages("t")) == ["m"]


class TestLoops(AdapterSuite):
    """Event loops, threads, processes, cancellation."""

    @case("loops.other_loop", "3.loop")
    async def test_another_event_loop_is_refused(self, store: Store) -> None:
        """Every operation from another event loop raises WrongLoopError and does not hang; the store works
        on.
        """
        await store.create_thread("r", thread_id="t")

        def elsewhere(operation: Callable[[Store], Awaitable[object]]) -> BaseException | None:
            async def call() -> object:
                return await asyncio.wait_for(operation(store), TIMEOUT_S)

            try:
                asyncio.run(call())
            except Exception as error:  # noqa: BLE001  (whatever it is, it is looked at)
                return error
            return None

        for index, operation in enumerate((*OPERATIONS, Store.close)):
            error = await asyncio.to_thread(elsewhere, operation)
            assert isinstance(error, WrongLoopError), f"operation {index}: {error!r}"
        assert (await store.get_thread("t")) is not None

    @case("loops.two_runs", "3.loop")
    async def test_a_store_kept_from_one_run_to_the_next_is_refused(self, database: Database) -> None:
        """A store opened in one asyncio.run and used in a second raises WrongLoopError, never hangs."""
        kept: list[Store] = []
        url = database.url
        holder = await database.open()  # what is in memory lives as long as one store does

        def two_runs() -> None:
            async def first() -> None:
                kept.append(await threadkeep.open(url))
                await kept[0].create_thread("r", thread_id="t")

            async def second() -> None:
                with pytest.raises(WrongLoopError):
                    await asyncio.wait_for(kept[0].get_thread("t"), TIMEOUT_S)
                async with threadkeep.open(url) as another:
                    assert (await another.get_thread("t")) is not None

            with warnings.catch_warnings():  # the first store could not be closed: a driver may say so
                warnings.simplefilter("ignore", ResourceWarning)
                asyncio.run(first())
                asyncio.run(second())
                kept.clear()
                gc.collect()  # here, where the driver may say so

        await asyncio.to_thread(two_runs)
        assert (await holder.get_thread("t")) is not None

    @case("loops.forked_child", "3.loop")
    async def test_a_forked_child_is_refused(self, store: Store) -> None:
        """In a forked child every operation raises WrongLoopError; the parent's store works on."""
        if not hasattr(os, "fork"):
            return  # no fork here, so nothing can be used across one
        await store.create_thread("r", thread_id="t")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
            child = os.fork()
        if child == 0:
            os._exit(_refused_in_child(store))
        _, status = await asyncio.to_thread(os.waitpid, child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        await add(store, "t", "m")
        assert ids(await store.list_messages("t")) == ["m"]

    @case("loops.many_tasks", "3.loop", "4.5.seq")
    async def test_many_tasks_may_use_one_store(self, store: Store) -> None:
        """A hundred tasks at once, reading and writing, all succeed."""
        await store.create_thread("r", thread_id="t")

        async def work(index: int) -> int:
            await add(store, "t", f"m{index}")
            return len((await store.list_messages("t", per_page=None)).items)

        counts = await asyncio.wait_for(asyncio.gather(*[work(index) for index in range(100)]), 3 * TIMEOUT_S)

        assert max(counts) == 100
        assert min(counts) >= 1

    @case("loops.cancelled_calls", "3.loop", "6.atomic")
    async def test_a_cancelled_call_leaves_the_store_usable(self, store: Store) -> None:
        """Calls cancelled at every early moment leave no half write and a store that works on, and close
        works.
        """
        await store.create_thread("r", thread_id="t")
        for steps in range(12):
            names = [f"m{steps}-{index}" for index in range(20)]
            call = asyncio.ensure_future(add(store, "t", *names))
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call], timeout=TIMEOUT_S)
            assert call.done()
        await add(store, "t", "last")

        found = await store.list_messages("t", per_page=None, with_total=True)
        thread = await store.get_thread("t")
        assert thread is not None
        assert thread.message_count == found.total == len(found.items)
        if store.capabilities.has(threadkeep.Capability.ATOMIC_BATCH):
            for steps in range(12):
                assert sum(name.startswith(f"m{steps}-") for name in ids(found)) in (0, 20)
        await asyncio.wait_for(store.close(), TIMEOUT_S)


def _refused_in_child(store: Store) -> int:
    """0 if the first step of every operation is WrongLoopError; by hand, for the loop is the parent's."""
    import signal

    signal.alarm(TIMEOUT_S)  # a child that hangs is killed, and the parent sees it
    for operation in (*OPERATIONS, Store.close):
        try:
            operation(store).__await__().send(None)
        except WrongLoopError:
            continue
        except BaseException:  # noqa: BLE001  (the child must end here, whatever it is)
            return 1
        return 2
    return 0


class TestSyncStore(AdapterSuite):
    """threadkeep.sync."""

    @case("sync.same_methods", "3.sync")
    async def test_the_sync_store_has_the_same_methods(self, store: Store) -> None:
        """Every public method of Store is one of SyncStore, with the same parameters, and none is more."""
        del store
        names = {name for name in dir(Store) if not name.startswith("_")}
        assert {name for name in dir(threadkeep.sync.SyncStore) if not name.startswith("_")} == names
        for name in names:
            ours, theirs = getattr(Store, name), getattr(threadkeep.sync.SyncStore, name)
            if callable(ours):
                assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)

    @case("sync.works_anywhere", "3.sync", "4.shared")
    async def test_a_sync_store_works_from_any_thread(self, database: Database) -> None:
        """One sync store used from several threads at once stores and reads what an async store sees."""
        store = await database.open()
        await store.create_thread("r", thread_id="t")

        def use_from_threads() -> list[str]:
            found: list[Any] = []
            with threadkeep.sync.open(database.url) as sync_store:

                def work(index: int) -> None:
                    sync_store.save_messages([NewMessage("t", "user", index, id=f"m{index}")])
                    found.append(sync_store.list_messages("t", per_page=None).items)

                threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(TIMEOUT_S)
                assert not any(thread.is_alive() for thread in threads)
                walked: list[Message] = list(sync_store.iter_messages("t", per_page=3))
            with pytest.raises(StoreClosedError):
                sync_store.get_thread("t")
            assert len(found) == 8
            return [message.id for message in walked]

        walked = await asyncio.to_thread(use_from_threads)

        assert walked == ids(await store.list_messages("t"))
        assert sorted(walked) == [f"m{index}" for index in range(8)]

    @case("sync.same_errors", "3.sync", "7.tree")
    async def test_a_sync_store_raises_the_same_errors(self, database: Database) -> None:
        """Errors come through as they are."""

        def provoke() -> None:
            store = threadkeep.sync.open(database.url)
            try:
                with pytest.raises(threadkeep.InvalidArgumentError):
                    store.get_thread("")
                with pytest.raises(threadkeep.NotFoundError):
                    store.update_thread("unknown", title="x")
            finally:
                store.close()
            store.close()

        await asyncio.to_thread(provoke)
