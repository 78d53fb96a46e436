"""Concurrency: several stores and several processes on one database, let go at once."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from threadkeep import (
    AlreadyExistsError,
    Capability,
    ConflictError,
    MessageUpdate,
    NewMessage,
    NotFoundError,
    Store,
    ThreadkeepError,
    UnsupportedCapabilityError,
)

from ..cases import case
from ..databases import Database
from ..plans import Ask, Outcomes, Plan, ask, flat
from ..races import Racers, race_stores
from .base import AdapterSuite
from .racing import RacingSuite
from .samples import add, filled_thread, ids

__all__ = ["TestCancellation", "TestLostUpdates", "TestOpenTogether", "TestRaces"]

_WRITERS = 24
_PROCESSES = 4
_CALLS_END_WITHIN_S = 60  # what has not ended by then never will


def _writers(calls: Callable[[int], Sequence[Ask]]) -> list[Plan]:
    """Plans for 24 writers, each a task, shared out among racers."""
    return [
        Plan([calls(writer) for writer in range(first, _WRITERS, _PROCESSES)]) for first in range(_PROCESSES)
    ]


def _all_succeeded(found: Sequence[Outcomes]) -> list[Any]:
    results = flat(found)
    failed = [result for result in results if isinstance(result, ThreadkeepError)]
    for error in failed:
        if isinstance(error, UnsupportedCapabilityError):  # all were refused, which is for the case to see
            raise error
    assert failed == [], "some of the writers failed"
    return results


class TestLostUpdates(RacingSuite):
    """24 writers at once, and nothing of what they wrote is lost."""

    @case("concurrency.merge", "4.10.writers", requires=frozenset({Capability.ATOMIC_MERGE}))
    async def test_merges_of_all_writers_are_kept(self, database: Database, racers: Racers) -> None:
        """24 writers that merge into one working memory, from its first write on, lose nothing."""
        async for arena in self.arenas(database, racers, Capability.ATOMIC_MERGE):
            owner = f"user-{arena.name}"

            def merges(writer: int, owner: str = owner) -> list[Ask]:
                patches = ({f"own-{writer}": step, "all": {f"by-{writer}": step}} for step in (1, 2))
                return [ask("merge_working_memory", owner, patch) for patch in patches]

            found = _all_succeeded(await arena.race(_writers(merges)))

            resource = await (await database.open()).get_resource(owner)
            assert resource is not None
            assert json.loads(resource.working_memory or "") == {
                **{f"own-{writer}": 2 for writer in range(_WRITERS)},
                "all": {f"by-{writer}": 2 for writer in range(_WRITERS)},
            }
            assert sorted(merged.revision for merged in found) == list(range(1, 2 * _WRITERS + 1))

    @case("concurrency.metadata.thread", "4.10.writers", "6.conditional", "4.5.touch")
    async def test_metadata_of_a_thread_keeps_every_key(self, database: Database, racers: Racers) -> None:
        """24 writers that merge a key each into a thread's metadata lose none, and each touch is later."""
        async for arena in self.arenas(database, racers):
            store, name = await database.open(), f"thread-{arena.name}"
            await store.create_thread("user-1", thread_id=name, metadata={"old": True})

            def updates(writer: int, name: str = name) -> list[Ask]:
                return [ask("update_thread", name, metadata={f"by_{writer}": writer})]

            found = _all_succeeded(await arena.race(_writers(updates)))

            thread = await store.get_thread(name)
            assert thread is not None
            assert thread.metadata == {"old": True, **{f"by_{writer}": writer for writer in range(_WRITERS)}}
            assert len({changed.updated_at for changed in found}) == _WRITERS

    @case("concurrency.metadata.message", "4.10.writers", "6.conditional")
    async def test_metadata_of_a_message_keeps_every_key(self, database: Database, racers: Racers) -> None:
        """24 writers that merge a key each into a message's metadata lose none."""
        async for arena in self.arenas(database, racers):
            store, name = await database.open(), f"message-{arena.name}"
            await store.ensure_thread("user-1", thread_id="thread-1")
            await add(store, "thread-1", name)

            def updates(writer: int, name: str = name) -> list[Ask]:
                return [ask("update_messages", [MessageUpdate(name, metadata={f"by_{writer}": writer})])]

            _all_succeeded(await arena.race(_writers(updates)))

            [message] = await store.get_messages(name)
            assert message.metadata == {f"by_{writer}": writer for writer in range(_WRITERS)}

    @case("concurrency.metadata.resource", "4.10.writers", "6.conditional")
    async def test_metadata_of_a_resource_keeps_every_key(self, database: Database, racers: Racers) -> None:
        """24 writers that merge a key each into a resource's metadata, from its first write on, lose none."""
        async for arena in self.arenas(database, racers):
            owner = f"user-{arena.name}"

            def updates(writer: int, owner: str = owner) -> list[Ask]:
                return [ask("update_resource", owner, metadata={f"by_{writer}": writer})]

            _all_succeeded(await arena.race(_writers(updates)))

            resource = await (await database.open()).get_resource(owner)
            assert resource is not None
            assert resource.metadata == {f"by_{writer}": writer for writer in range(_WRITERS)}

    @case("concurrency.revision", "4.7.revision", "6.conditional")
    async def test_every_write_of_working_memory_counts(self, database: Database, racers: Racers) -> None:
        """24 writes of one working memory give 24 revisions, and the last one's text stays."""
        async for arena in self.arenas(database, racers):
            owner = f"user-{arena.name}"

            def writes(writer: int, owner: str = owner) -> list[Ask]:
                return [ask("update_resource", owner, working_memory=f"by {writer}")]

            found = _all_succeeded(await arena.race(_writers(writes)))

            assert sorted(written.revision for written in found) == list(range(1, _WRITERS + 1))
            last = max(found, key=lambda written: written.revision)
            assert await (await database.open()).get_resource(owner) == last


class TestRaces(RacingSuite):
    """Calls that exclude each other: one wins, and what is stored makes sense."""

    @case("concurrency.create", "3.create", "6.conditional")
    async def test_one_of_many_creates_wins(self, database: Database, racers: Racers) -> None:
        """Of 24 create_thread with one id one succeeds, the others find it taken, and its thread stays."""
        async for arena in self.arenas(database, racers):
            name = f"thread-{arena.name}"

            def creates(writer: int, name: str = name) -> list[Ask]:
                return [ask("create_thread", f"user-{writer % 2}", thread_id=name, title=f"by {writer}")]

            found = flat(await arena.race(_writers(creates)))

            made = [result for result in found if not isinstance(result, AlreadyExistsError)]
            assert made == [await (await database.open()).get_thread(name)]

    @case("concurrency.ensure", "3.ensure", "6.conditional")
    async def test_all_of_many_ensures_return_one_thread(self, database: Database, racers: Racers) -> None:
        """24 ensure_thread with one id all return the same thread."""
        async for arena in self.arenas(database, racers):
            name = f"thread-{arena.name}"

            def ensures(writer: int, name: str = name) -> list[Ask]:
                return [ask("ensure_thread", "user-1", thread_id=name, title=f"by {writer}")]

            found = _all_succeeded(await arena.race(_writers(ensures)))

            stored = await (await database.open()).get_thread(name)
            assert found == [stored] * _WRITERS

    @case("concurrency.guards", "4.7.guards", "6.conditional")
    async def test_one_of_many_guarded_writes_wins(self, database: Database, racers: Racers) -> None:
        """Of 24 writes guarded by if_title, and of 24 guarded by if_revision, one each succeeds."""
        async for arena in self.arenas(database, racers):
            store, name = await database.open(), f"thread-{arena.name}"
            await store.create_thread("user-1", thread_id=name)

            def guarded(writer: int, name: str = name) -> list[Ask]:
                text = f"by {writer}"
                return [
                    ask("update_thread", name, title=text, if_title=""),
                    ask("update_resource", name, working_memory=text, if_revision=0),
                ]

            found = await arena.race(_writers(guarded))

            tasks = [task for outcomes in found for task in outcomes]
            titled, written = [
                [task[step] for task in tasks if not isinstance(task[step], ConflictError)] for step in (0, 1)
            ]
            assert titled == [await store.get_thread(name)]
            assert written == [await store.get_resource(name)]

    @case("concurrency.upsert", "4.6.keeps", "6.conditional")
    async def test_a_message_saved_by_many_is_one_message(self, database: Database, racers: Racers) -> None:
        """24 writers that save one id make one message, counted once, whose place is the first one's."""
        async for arena in self.arenas(database, racers):
            store, name = await database.open(), f"message-{arena.name}"
            thread = f"thread-{arena.name}"
            await store.create_thread("user-1", thread_id=thread)

            def saves(writer: int, name: str = name, thread: str = thread) -> list[Ask]:
                return [ask("save_messages", [NewMessage(thread, "user", f"by {writer}", id=name)])]

            found = _all_succeeded(await arena.race(_writers(saves)))

            [message] = (await store.list_messages(thread, per_page=None)).items
            assert [message] in found
            assert {(saved.created_at, saved.seq) for [saved] in found} == {(message.created_at, message.seq)}
            stored = await store.get_thread(thread)
            assert stored is not None
            assert stored.message_count == 1

    @case("concurrency.save_against_delete", "4.8.whole", "4.6.thread", "6.conditional")
    async def test_no_message_outlives_its_thread(self, database: Database, racers: Racers) -> None:
        """Saves that race with the delete of their thread are refused or deleted with it."""
        async for arena in self.arenas(database, racers):
            store, owner = await database.open(), f"user-{arena.name}"
            threads = [f"thread-{arena.name}-{number}" for number in range(6)]
            for name in threads:
                await store.create_thread(owner, thread_id=name)

            def batch(name: str) -> list[NewMessage]:
                return [NewMessage(name, "user", "text", id=f"{name}-{number}") for number in range(3)]

            deletes = Plan([[ask("delete_thread", name) for name in threads]])
            saves = Plan([[ask("save_messages", batch(name)) for name in threads] for _ in range(3)])
            found = await arena.race([saves, deletes, saves])

            assert found[1] == [[True] * len(threads)]
            refused = [result for result in flat([found[0], found[2]]) if not isinstance(result, list)]
            assert all(isinstance(error, NotFoundError) for error in refused), refused
            assert (await store.list_messages(resource_id=owner, per_page=None)).items == []
            assert (
                await store.get_messages([message.id or "" for name in threads for message in batch(name)])
                == []
            )
            assert (await store.create_thread(owner, thread_id=threads[0])).message_count == 0

    @case("concurrency.save_against_transfer", "3.transfer", "4.6.owner", "6.conditional")
    async def test_messages_belong_to_their_threads_owner(self, database: Database, racers: Racers) -> None:
        """Saves that race with transfers of their thread leave every message with the thread's owner."""
        async for arena in self.arenas(database, racers):
            store, name = await database.open(), f"thread-{arena.name}"
            await store.create_thread("user-0", thread_id=name)
            saves = [ask("save_messages", [NewMessage(name, "user", n, id=f"{name}-{n}")]) for n in range(20)]
            moves = [ask("transfer_thread", name, f"user-{number % 2}") for number in range(20)]
            _all_succeeded(await arena.race([Plan([saves[:10], saves[10:]]), Plan([moves])]))

            thread = await store.get_thread(name)
            assert thread is not None
            found = (await store.list_messages(name, per_page=None)).items
            assert {message.resource_id for message in found} == {thread.resource_id}
            assert len(found) == thread.message_count == 20
            assert len((await store.list_messages(resource_id=thread.resource_id, per_page=None)).items) >= 20

    @case("concurrency.clone_against_append", "4.9.whole", requires=frozenset({Capability.ATOMIC_BATCH}))
    async def test_a_clone_is_one_moment_of_its_source(self, database: Database, racers: Racers) -> None:
        """Clones taken while batches of three are appended hold whole batches, the first ones, in order."""
        async for arena in self.arenas(database, racers):
            store, name = await database.open(), f"thread-{arena.name}"
            await store.create_thread("user-1", thread_id=name)
            batches = [
                ask("save_messages", [NewMessage(name, "user", 3 * batch + n) for n in range(3)])
                for batch in range(16)
            ]
            clones = [ask("clone_thread", name, thread_id=f"{name}-{number}") for number in range(8)]
            found = await arena.race([Plan([batches]), Plan([clones])])

            _all_succeeded(found)
            for copy in found[1][0]:
                copied = (await store.list_messages(copy.thread.id, per_page=None)).items
                count = len(copied)
                assert count % 3 == 0, "a clone with part of a batch"
                assert [message.content for message in copied] == list(range(count))
                assert list(copy.id_map.values()) == ids(copied)
                assert copy.thread.message_count == count

    @case("concurrency.whole_batches", "6.atomic", requires=frozenset({Capability.ATOMIC_BATCH}))
    async def test_readers_see_whole_batches(self, database: Database, racers: Racers) -> None:
        """While batches of three are saved and deleted, every reader sees whole ones and a fitting total."""
        async for arena in self.arenas(database, racers):
            store, name = await database.open(), f"thread-{arena.name}"
            await store.create_thread("user-1", thread_id=name)
            writes: list[Ask] = []
            for batch in range(12):
                names = [f"{name}-{batch}-{n}" for n in range(3)]
                writes.append(ask("save_messages", [NewMessage(name, "user", "text", id=n) for n in names]))
                writes += [ask("delete_messages", names)] if batch % 2 else []
            reads = [ask("list_messages", name, per_page=None, with_total=True)] * 30
            found = await arena.race([Plan([writes]), Plan([reads])])

            _all_succeeded(found)
            for page in found[1][0]:
                assert len(page.items) % 3 == 0, "a reader saw part of a batch"
                assert page.total == len(page.items)

    @case("concurrency.locks", "4.5.locks")
    async def test_batches_over_the_same_threads_all_succeed(
        self, database: Database, racers: Racers
    ) -> None:
        """24 writers that save to the same threads in different orders all succeed, without a deadlock."""
        async for arena in self.arenas(database, racers):
            store = await database.open()
            names = [f"thread-{arena.name}-{number}" for number in range(4)]
            for name in names:
                await store.create_thread("user-1", thread_id=name)

            def saves(writer: int, names: list[str] = names) -> list[Ask]:
                order = random.Random(writer).sample(names, len(names))
                return [ask("save_messages", [NewMessage(name, "user", writer) for name in order])]

            _all_succeeded(await arena.race(_writers(saves)))

            threads = [await store.get_thread(name) for name in names]
            assert [thread.message_count for thread in threads if thread is not None] == [_WRITERS] * len(
                names
            )


class TestOpenTogether(RacingSuite):
    """Many open one new database at the same time."""

    @case("concurrency.open.stores", "3.schema")
    async def test_a_new_database_opened_by_many_stores(self, database: Database) -> None:
        """Eight stores that open and migrate a new database at once all work."""
        stores = await asyncio.gather(*[database.open() for _ in range(8)])

        plan = Plan([[ask("migrate"), ask("ensure_thread", "user-1", thread_id="thread-1")]])
        found = _all_succeeded(await race_stores(stores, [plan] * len(stores)))

        assert found == [None, await stores[0].get_thread("thread-1")] * len(stores)

    @case("concurrency.open.processes", "3.schema")
    async def test_a_new_database_opened_by_many_processes(self, database: Database, racers: Racers) -> None:
        """Eight processes that open a new database at the same moment all work and share it."""
        self.needs_processes(database)
        plans = [
            Plan(
                [[ask("create_thread", "user-1", thread_id=f"thread-{number}"), ask("migrate")]],
                opens_at_gate=True,
            )
            for number in range(8)
        ]
        _all_succeeded(await racers.race(database.url, plans))

        store = await database.open(migrate=False)
        assert sorted(ids(await store.list_threads())) == [f"thread-{number}" for number in range(8)]


class TestCancellation(AdapterSuite):
    """Tasks cancelled at any moment of a call."""

    @case("concurrency.cancel.writes", "6.cancelled", "6.atomic")
    async def test_cancelled_writes_are_whole_or_nothing(self, database: Database) -> None:
        """Saves cancelled at any moment leave whole batches or none, and the store goes on working."""
        store = await database.open()
        await store.create_thread("user-1", thread_id="thread-1")
        for turns in range(30):
            batch = [NewMessage("thread-1", "user", n, id=f"{turns}-{n}") for n in range(20)]
            await _cancelled(store.save_messages(batch), after_turns=turns * turns // 4)

        saved = await self._goes_on(store)
        if store.capabilities.has(Capability.ATOMIC_BATCH):
            batches = [identifier.split("-")[0] for identifier in saved if identifier != "after"]
            assert {batches.count(name) for name in batches} <= {20}, "part of a cancelled batch is stored"
        other = await database.open()
        await store.close()  # what still ran has ended
        assert await self._goes_on(other) == saved

    @case("concurrency.cancel.every_call", "6.cancelled")
    async def test_cancelled_calls_leak_nothing(self, store: Store) -> None:
        """After many cancelled calls of every kind, many calls at once still end and find all in order."""
        names = await filled_thread(store, 40)
        for turns in range(12):
            for call in (
                store.list_messages("thread-1", where={"even": True}, per_page=None, with_total=True),
                store.get_messages(names),
                store.clone_thread("thread-1", thread_id=f"clone-{turns}"),
                store.update_thread("thread-1", metadata={"turns": turns}),
                store.update_resource("user-1", working_memory="text"),
                store.update_messages([MessageUpdate(name, role="tool") for name in names]),
                store.list_threads(order_by="updated_at"),
                store.delete_thread(f"clone-{turns - 1}"),
            ):
                await _cancelled(call, after_turns=turns)

        async with asyncio.timeout(_CALLS_END_WITHIN_S):
            found = await asyncio.gather(*[store.list_messages("thread-1", per_page=None) for _ in range(40)])
        assert all(ids(page) == names for page in found)
        await self._goes_on(store)

    async def _goes_on(self, store: Store) -> list[str]:
        """Write and read; returns the ids of all messages of the thread."""
        async with asyncio.timeout(_CALLS_END_WITHIN_S):
            await add(store, "thread-1", "after")
            page = await store.list_messages("thread-1", per_page=None, with_total=True)
        assert "after" in ids(page)
        assert page.total == len(page.items)
        return ids(page)


async def _cancelled(call: Awaitable[object], *, after_turns: int) -> None:
    """Cancel a call after so many turns of the event loop, and wait until it has ended."""
    task = asyncio.ensure_future(call)
    for _ in range(after_turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError, NotFoundError, ConflictError):
        await task
