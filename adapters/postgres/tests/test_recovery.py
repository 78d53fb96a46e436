"""Connections that die or run out, calls that are cancelled, servers that refuse."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from psycopg import AsyncConnection

import threadkeep
from threadkeep import (
    LimitExceededError,
    NewMessage,
    NotFoundError,
    SchemaVersionError,
    Store,
    UnavailableError,
)
from threadkeep_postgres._settings import Settings
from threadkeep_postgres.adapter import PostgresAdapter
from threadkeep_postgres.embedded import EmbeddedServer
from threadkeep_postgres.probe import Probe

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """A server of our own, whose sessions are cut and whose settings are changed."""
    with EmbeddedServer(settings={"fsync": "off"}) as server:
        yield server


@asynccontextmanager
async def direct(url: str) -> AsyncGenerator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(Settings.parse(url).conninfo, autocommit=True) as db:
        yield db


async def sessions(url: str, name: str) -> list[int]:
    """The sessions of an application, by process id."""
    async with direct(url) as db:
        found = await db.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", [name])
        return [row[0] for row in await found.fetchall()]


async def test_idle_sessions_that_were_terminated_are_not_noticed(server: EmbeddedServer) -> None:
    async with threadkeep.open(f"{server.url}?schema=terminated&pool_min=4") as store:
        await store.create_thread("user-1", thread_id="t")
        for number in range(3):
            await asyncio.gather(*[store.get_thread("t") for _ in range(4)])
            await Probe().cut_connections(server.url)

            await store.save_messages([NewMessage("t", "user", number)])

        assert [each.content for each in (await store.list_messages("t")).items] == [0, 1, 2]


async def test_idle_session_timeout_is_not_noticed(server: EmbeddedServer) -> None:
    name = "timeout"
    options = quote("-c idle_session_timeout=50ms")
    url = f"{server.url}?schema=timeouts&application_name={name}&options={options}"
    async with threadkeep.open(url) as store:
        await store.create_thread("user-1", thread_id="t")
        while await sessions(server.url, name):  # each asks the server: nothing here could be awaited
            pass

        assert (await store.save_messages([NewMessage("t", "user", "after")]))[0].content == "after"


async def test_a_restarted_server_is_not_noticed_by_the_next_call(server: EmbeddedServer) -> None:
    async with threadkeep.open(f"{server.url}?schema=restarted") as store:
        await store.create_thread("user-1", thread_id="t")
        await asyncio.to_thread(server.stop)
        with pytest.raises(UnavailableError) as away:
            await store.get_thread("t")
        assert away.value.outcome == "not_applied"
        await asyncio.to_thread(server.start)

        assert await store.get_thread("t") is not None


async def test_a_pool_that_stays_busy_is_an_error_that_names_its_options(url: str) -> None:
    async with threadkeep.open(f"{url}&pool_max=1&pool_timeout_s=0.05") as store, direct(url) as db:
        await store.create_thread("user-1", thread_id="t")
        await db.execute(f'BEGIN; LOCK TABLE "{Settings.parse(url).schema}".thread'.encode())
        waiting = asyncio.create_task(store.get_thread("t"))
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError, match="pool_max"):
            await store.get_thread("t")
        await db.execute("ROLLBACK")

        assert await waiting is not None
        assert await store.get_thread("t") is not None


async def test_more_calls_than_connections_wait_their_turn(url: str) -> None:
    async with threadkeep.open(f"{url}&pool_max=2") as store:
        await store.create_thread("user-1", thread_id="t")
        await asyncio.gather(*[store.save_messages([NewMessage("t", "user", n)]) for n in range(50)])

        assert (await store.list_messages("t", per_page=None, with_total=True)).total == 50


def pool_of(store: Store) -> Any:
    adapter = getattr(store, "_adapter")  # noqa: B009  (private)
    assert isinstance(adapter, PostgresAdapter)
    return adapter.pool


async def test_cancelled_calls_leak_no_connection_and_leave_no_half_write(url: str) -> None:
    async with threadkeep.open(f"{url}&pool_max=3&pool_timeout_s=5") as store:
        await store.create_thread("user-1", thread_id="t")
        for step in range(60):
            batch = [NewMessage("t", "user", n, metadata={"step": step}) for n in range(3)]
            calls: list[asyncio.Task[Any]] = [
                asyncio.create_task(store.save_messages(batch)),
                asyncio.create_task(store.update_thread("t", metadata={"step": step})),
                asyncio.create_task(store.list_messages("t", with_total=True)),
            ]
            await asyncio.wait(calls, timeout=step * 0.0001)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

        found = await asyncio.gather(*[store.get_thread("t") for _ in range(3)])  # the whole pool is there
        assert all(found)
        page = await store.list_messages("t", per_page=None, with_total=True)
        assert page.total == len(page.items)
        assert len(page.items) % 3 == 0
        for step in range(60):
            assert len((await store.list_messages("t", where={"step": step})).items) in (0, 3)


async def test_a_call_cancelled_while_it_waits_for_a_lock_frees_its_connection(url: str) -> None:
    async with threadkeep.open(f"{url}&pool_max=1") as store, direct(url) as db:
        await store.create_thread("user-1", thread_id="t")
        await db.execute(f'BEGIN; UPDATE "{Settings.parse(url).schema}".thread SET title = title'.encode())
        waiting = asyncio.create_task(store.save_messages([NewMessage("t", "user", "x")]))
        await asyncio.wait([waiting], timeout=0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert (await store.list_messages("t")).items == []  # though the lock is still held
        await db.execute("ROLLBACK")
        assert (await store.list_messages("t", with_total=True)).total == 0


async def test_an_error_of_the_contract_leaves_no_transaction_open(url: str) -> None:
    name = f"a{secrets.token_hex(4)}"
    async with threadkeep.open(f"{url}&pool_max=1&application_name={name}") as store:
        with pytest.raises(NotFoundError):
            await store.update_thread("nowhere", metadata={"a": 1})
        async with direct(url) as db:
            found = await db.execute("SELECT state FROM pg_stat_activity WHERE application_name = %s", [name])
            assert await found.fetchall() == [("idle",)]


async def test_a_read_only_server_says_so(url: str) -> None:
    async with threadkeep.open(url) as store:
        await store.create_thread("user-1", thread_id="t")
    options = quote("-c default_transaction_read_only=on")
    async with threadkeep.open(f"{url}&options={options}") as store:
        assert await store.get_thread("t") is not None
        for call in (
            lambda: store.save_messages([NewMessage("t", "user", "x")]),
            lambda: store.update_thread("t", metadata={"a": 1}),
            lambda: store.merge_working_memory("user-1", {"a": 1}),
        ):
            with pytest.raises(UnavailableError, match="takes no writes") as refused:
                await call()
            assert refused.value.outcome == "not_applied"


async def test_a_standby_answers_reads_and_refuses_writes_by_name() -> None:
    with EmbeddedServer(settings={"fsync": "off"}) as primary:
        async with threadkeep.open(primary.url) as store:
            await store.create_thread("user-1", thread_id="t")
            await store.save_messages([NewMessage("t", "user", "x", metadata={"a": 1}, id="m")])
        with EmbeddedServer(settings={"fsync": "off"}, standby_of=primary) as standby:
            async with threadkeep.open(standby.url, migrate=False) as replica:
                found = await replica.list_messages("t", where={"a": 1}, with_total=True)
                assert ([message.id for message in found.items], found.total) == (["m"], 1)
                with pytest.raises(UnavailableError, match="takes no writes: it is a replica") as refused:
                    await replica.save_messages([NewMessage("t", "user", "y")])
                assert refused.value.outcome == "not_applied"
                assert (await replica.list_messages("t", with_total=True)).total == 1


async def test_content_over_the_limit_is_refused_before_it_is_sent(url: str) -> None:
    async with threadkeep.open(url) as store:
        await store.create_thread("user-1", thread_id="t")
        with pytest.raises(LimitExceededError, match="200 MiB of content a message"):
            await store.save_messages([NewMessage("t", "user", "x" * (200 * 2**20))])
        assert (await store.list_messages("t", with_total=True)).total == 0


async def test_a_statement_timeout_is_an_error_and_writes_nothing(url: str) -> None:
    async with threadkeep.open(url) as store, direct(url) as db:
        await store.create_thread("user-1", thread_id="t")
        await db.execute(f'BEGIN; UPDATE "{Settings.parse(url).schema}".thread SET title = title'.encode())
        async with threadkeep.open(f"{url}&options={quote('-c statement_timeout=50ms')}") as hurried:
            with pytest.raises(UnavailableError, match="statement_timeout") as refused:
                await hurried.save_messages([NewMessage("t", "user", "x")])
        await db.execute("ROLLBACK")

        assert refused.value.outcome == "not_applied"
        assert (await store.list_messages("t", with_total=True)).total == 0


async def test_a_role_needs_no_more_than_the_readme_says(server: EmbeddedServer) -> None:
    owner = f"{server.url}?schema=shared_schema"
    async with threadkeep.open(owner):
        pass
    async with direct(owner) as db:
        await db.execute("CREATE ROLE app LOGIN")
        await db.execute(
            "REVOKE ALL ON DATABASE postgres FROM PUBLIC; GRANT CONNECT ON DATABASE postgres TO app"
        )
        await db.execute("GRANT USAGE ON SCHEMA shared_schema TO app")
        await db.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shared_schema TO app")
        await db.execute("REVOKE INSERT, UPDATE, DELETE ON shared_schema.migration FROM app")
    limited = f"postgresql://app@127.0.0.1:{urlsplit(server.url).port}/postgres?schema=shared_schema"
    for migrate in (True, False):
        async with threadkeep.open(limited, migrate=migrate) as store:
            thread = await store.create_thread("user-1", metadata={"a": 1})
            await store.save_messages([NewMessage(thread.id, "user", "x", metadata={"b": 2})])
            await store.clone_thread(thread.id)
            await store.transfer_thread(thread.id, "user-2")
            await store.merge_working_memory("user-2", {"a": 1})
            assert (await store.list_messages(thread.id, where={"b": 2}, with_total=True)).total == 1
            await store.delete_resource("user-1")
            await store.delete_resource("user-2")

    elsewhere = limited.replace("shared_schema", "elsewhere")
    with pytest.raises(UnavailableError, match="privilege"):
        await threadkeep.open(elsewhere)
    with pytest.raises(SchemaVersionError):
        await threadkeep.open(elsewhere, migrate=False)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("/postgres?", "/nowhere?"), "no such database"),
        (("postgres@", "nobody_here@"), "refused the role"),
        (("postgresql://", "postgresql://127.0.0.1:1,"), ""),
        (("127.0.0.1", "127.0.0.2"), "cannot be reached"),
    ],
)
async def test_a_refused_connection_says_why(url: str, change: tuple[str, str], reason: str) -> None:
    if not reason:  # of several hosts one is enough
        await (await threadkeep.open(url.replace("@", "@127.0.0.1:1,"))).close()
        return
    with pytest.raises(UnavailableError, match=reason):
        await threadkeep.open(url.replace(*change))
