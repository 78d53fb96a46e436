"""Faults: processes and servers that die, connections that are cut, disks that are full.

What an adapter's probe does not offer is not tested; the report says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import pytest_asyncio

import threadkeep
from threadkeep import (
    Capability,
    LimitExceededError,
    NewMessage,
    Store,
    UnavailableError,
)

from ..cases import case
from ..databases import Database
from ..faults import BATCH, THREAD, Load, batch, recovered
from ..plans import Plan, ask
from ..probe import FullDisk, ReadOnly, Server
from ..races import Racers
from .base import AdapterSuite
from .racing import RacingSuite
from .samples import add, contents_of, ids

__all__ = ["TestDisk", "TestKilledProcess", "TestServer"]


class TestKilledProcess(RacingSuite):
    """A process that writes is killed, as by a power cut; others go on."""

    @case("faults.killed_writer", "7.recovery", "6.atomic", "4.shared")
    async def test_what_a_killed_writer_was_told_is_there(self, database: Database, racers: Racers) -> None:
        """Acknowledged writes of a killed process are there, no batch is torn, and others write on."""
        self.needs_processes(database)
        store = await database.open()
        await store.create_thread("user-1", thread_id=THREAD)
        saves = [
            [ask("save_messages", batch(worker, number)) for number in range(500)] for worker in range(2)
        ]
        told = await racers.until_killed(database.url, Plan(saves), after=40)

        stored = ids(await store.list_messages(THREAD, per_page=None))
        assert {message.id for saved in told for message in saved} <= set(stored)
        if store.capabilities.has(Capability.ATOMIC_BATCH):
            assert len(stored) % BATCH == 0, "part of a batch is stored"
        await add(store, THREAD, "after")
        thread = await store.get_thread(THREAD)
        assert thread is not None
        assert thread.message_count == len(stored) + 1


class TestDisk(AdapterSuite):
    """The database takes no more."""

    async def _refuses_writes(self, store: Store, url: str, fault: AbstractAsyncContextManager[None]) -> None:
        await store.create_thread("user-1", thread_id=THREAD)
        await add(store, THREAD, "m1")
        before = await contents_of(store)
        large = [NewMessage(THREAD, "user", "x" * 200_000, id=f"large-{index}") for index in range(20)]

        async with fault:
            for call in (
                lambda: store.save_messages(large),
                lambda: store.update_resource("user-1", working_memory="x" * 1_000_000),
            ):
                with pytest.raises(UnavailableError) as refused:
                    await call()
                assert refused.value.outcome == "not_applied"
                assert url not in str(refused.value)
            assert await contents_of(store) == before, "reads go on, and nothing was written"

        await store.save_messages(large)
        assert len(await store.get_messages([message.id or "" for message in large])) == len(large)

    @case("faults.read_only", "7.outcome")
    async def test_a_read_only_database_refuses_writes(self, database: Database) -> None:
        """While the database takes no writes, they are UnavailableError, not applied; reads go on."""
        probe = self.offered(ReadOnly)
        store = await database.open()
        await self._refuses_writes(store, database.url, probe.read_only(database.url, store))

    @case("faults.full_disk", "7.outcome", "7.recovery")
    async def test_a_full_disk_refuses_writes(self, database: Database) -> None:
        """While the disk is full, writes that need room are UnavailableError, not applied; reads go on."""
        probe = self.offered(FullDisk)
        store = await database.open()
        await self._refuses_writes(store, database.url, probe.full_disk(database.url, store))

    @case("faults.large_value", "6.limit", "4.exact")
    async def test_a_large_value_is_stored_or_refused(self, store: Store) -> None:
        """17 MB of content in a batch are stored exactly, or LimitExceededError with nothing written."""
        await store.create_thread("user-1", thread_id=THREAD)
        text = "ß" + "x" * 17_000_000
        messages = [
            NewMessage(THREAD, "user", content, id=name) for name, content in (("m1", "a"), ("m2", text))
        ]
        try:
            await store.save_messages(messages)
        except LimitExceededError:
            assert (await store.list_messages(THREAD)).items == []
        else:
            assert [message.content for message in await store.get_messages(["m1", "m2"])] == ["a", text]


class TestServer(AdapterSuite):
    """The server dies or cuts connections under load, and comes back."""

    @pytest_asyncio.fixture
    async def server(self, database: Database) -> AsyncIterator[tuple[Server, str]]:
        """A server of our own and its URL."""
        del database  # only its probe is used, by offered
        probe = self.offered(Server)
        async with probe.private_server() as url:
            yield probe, url

    @case("faults.server_killed", "7.recovery", "7.outcome")
    async def test_a_server_killed_under_load(self, server: tuple[Server, str]) -> None:
        """After a kill and a restart acknowledged writes are there, and the store works again by itself."""
        probe, url = server
        async with threadkeep.open(url) as store:
            await store.create_thread("user-1", thread_id=THREAD)
            async with Load(store) as load:
                await load.until(lambda load: len(load.acknowledged()) >= 20)
                await probe.kill(url)
                await load.until(lambda load: len(load.errors()) >= 4)
                await probe.start(url)
                before = len(load.acknowledged())
                await load.until(lambda load: len(load.acknowledged()) >= before + 20)
            await load.check(store, atomic=store.capabilities.has(Capability.ATOMIC_BATCH))

    @case("faults.connections_cut", "7.recovery", "7.outcome")
    async def test_connections_cut_under_load_and_at_rest(self, server: tuple[Server, str]) -> None:
        """After its connections are cut, busy or idle, the store works again by itself; nothing is lost."""
        probe, url = server
        async with threadkeep.open(url) as store:
            await store.create_thread("user-1", thread_id=THREAD)
            async with Load(store) as load:
                for _ in range(3):
                    before = len(load.acknowledged())
                    await load.until(lambda load, before=before: len(load.acknowledged()) >= before + 10)
                    await probe.cut_connections(url)
                before = len(load.acknowledged())
                await load.until(lambda load: len(load.acknowledged()) >= before + 10)
            await probe.cut_connections(url)
            await recovered(lambda: store.get_thread(THREAD))
            await load.check(store, atomic=store.capabilities.has(Capability.ATOMIC_BATCH))

    @case("faults.server_away", "7.outcome")
    async def test_calls_while_the_server_is_away(self, server: tuple[Server, str]) -> None:
        """While the server is away reads and writes are UnavailableError and end; so does opening a store."""
        probe, url = server
        async with threadkeep.open(url) as store:
            await store.create_thread("user-1", thread_id=THREAD)
            await probe.kill(url)
            for call in (
                lambda: store.get_thread(THREAD),
                lambda: store.save_messages(batch(0, 0)),
                lambda: threadkeep.open(url),
            ):
                with pytest.raises(UnavailableError):
                    await call()
            await probe.start(url)
            await recovered(lambda: store.save_messages(batch(0, 0)))
