"""The PostgreSQL backend: a pool of connections, one or two round trips a call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.types.numeric import Int8BinaryDumper

from threadkeep.adapter import StorageAdapter
from threadkeep.capabilities import Capabilities
from threadkeep.errors import ConflictError
from threadkeep.models import DeletedResource, Explanation
from threadkeep.records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord
from threadkeep.requests import (
    ClonedThread,
    CloneThread,
    DeleteMessages,
    MemoryQuery,
    MemorySlice,
    MessageQuery,
    MessageSlice,
    ResourceQuery,
    ResourceSlice,
    SaveMemories,
    SaveMessages,
    ThreadQuery,
    ThreadSlice,
    TransferThread,
    UpdateMessages,
    UpdateResource,
    UpdateThread,
    WriteThread,
)

from . import _errors, _messages, _reads, _schema, _writes
from ._explain import Planned, explanation
from ._pool import Pool
from ._queries import Queries
from ._session import LostRaceError, Session
from ._settings import Settings
from .plugin import SPEC

__all__ = ["PostgresAdapter"]

Result = TypeVar("Result")

_TRIES = 12
_FIRST_WAIT_S = 0.002


class _DeadIdleError(Exception):
    """A connection had died in the pool, and nothing was sent that could have been committed."""


def _reason(error: psycopg.Error, session: Session) -> Exception:
    """What an error of a call means: to be tried again, or the contract's error."""
    if _errors.is_race(error):
        return LostRaceError()
    if _errors.is_lost(error) and session.reused and not session.writing:
        return _DeadIdleError()
    return _errors.translate(error, writing=session.writing)


class PostgresAdapter(StorageAdapter):
    """Each call borrows one connection for one or two round trips."""

    name = "postgres"

    def __init__(self, settings: Settings) -> None:
        self.capabilities = Capabilities(SPEC.support)
        self._settings = settings
        self._queries = Queries(settings.schema)
        self._filters = _reads.Filters(self._queries)
        self._pool = Pool(
            self._connection,
            least=settings.pool_min,
            most=settings.pool_max,
            timeout_s=settings.pool_timeout_s,
        )

    @classmethod
    async def connect(cls, url: str, *, migrate: bool) -> PostgresAdapter:
        """Open the database of a URL; see :class:`threadkeep.hookspecs.Connect`."""
        adapter = cls(Settings.parse(url))
        try:
            await adapter._prepare(migrate=migrate)
        except BaseException:
            await asyncio.shield(adapter.close())
            raise
        return adapter

    async def _connection(self) -> AsyncConnection[Any]:
        with _errors.connecting():
            connection = await AsyncConnection.connect(
                autocommit=True,
                prepare_threshold=None if self._settings.pgbouncer else 1,
                conninfo=self._settings.conninfo,
                cursor_factory=AsyncRawCursor,
            )
        # One type for every int: else each combination of sizes would be a prepared statement of its own.
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        return connection

    async def _prepare(self, *, migrate: bool) -> None:
        wanted = self._settings.metadata_index
        with _errors.translated():
            async with self._pool.lend() as lent:
                db = lent.connection
                if migrate:
                    await _schema.migrate(db, self._queries)
                _schema.require_current(await _schema.version(db, self._queries))
                if wanted is not None:
                    await _schema.choose_indexed_keys(db, self._queries, wanted, migrate=migrate)
                self._filters.indexed = await self._filters.read(Session(lent))

    async def _run(self, call: Callable[[Session], Awaitable[Result]]) -> Result:
        """Run a call, again where it lost a race, or met a connection that was dead before it could write."""
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(random.random() * _FIRST_WAIT_S * 2 ** min(attempt, 7))
            try:
                async with self._pool.lend() as lent:
                    session = Session(lent)
                    try:
                        return await call(session)
                    except psycopg.Error as exc:
                        raise _reason(exc, session) from exc
            except LostRaceError:
                continue
            except _DeadIdleError:
                await self._pool.drop_idle()
        raise ConflictError("other writers were in the way each time; re-read and retry")

    async def close(self) -> None:
        await self._pool.close()

    async def migrate(self) -> None:
        with _errors.translated():
            async with self._pool.lend() as lent:
                await _schema.migrate(lent.connection, self._queries, extras=True)

    # --- for the probe ----------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """What its URL said."""
        return self._settings

    @property
    def pool(self) -> Pool:
        """Its connections."""
        return self._pool

    # --- threads ----------------------------------------------------------------------------------

    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        return await self._run(lambda db: _writes.write_thread(self._queries, db, request))

    async def get_thread(self, thread_id: str) -> ThreadRecord | None:
        return await self._run(lambda db: _reads.get_thread(self._queries, db, thread_id))

    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        return await self._run(lambda db: _reads.list_threads(self._filters, db, query))

    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        return await self._run(lambda db: _writes.update_thread(self._queries, db, request))

    async def delete_thread(self, thread_id: str, resource_id: str | None) -> bool:
        return await self._run(lambda db: _writes.delete_thread(self._queries, db, thread_id, resource_id))

    async def clear_thread(self, thread_id: str, resource_id: str | None, now: int) -> int:
        return await self._run(
            lambda db: _writes.clear_thread(self._queries, db, thread_id, resource_id, now)
        )

    async def transfer_thread(self, request: TransferThread) -> ThreadRecord:
        return await self._run(lambda db: _writes.transfer_thread(self._queries, db, request))

    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        return await self._run(lambda db: _writes.clone_thread(self._queries, db, request))

    # --- messages ---------------------------------------------------------------------------------

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        return await self._run(lambda db: _messages.save_messages(self._queries, db, request))

    async def get_messages(self, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
        return await self._run(lambda db: _reads.get_messages(self._queries, db, ids, resource_id))

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        return await self._run(lambda db: _reads.list_messages(self._filters, db, query))

    async def update_messages(self, request: UpdateMessages) -> list[MessageRecord]:
        return await self._run(lambda db: _messages.update_messages(self._queries, db, request))

    async def delete_messages(self, request: DeleteMessages) -> int:
        return await self._run(lambda db: _messages.delete_messages(self._queries, db, request))

    # --- resources --------------------------------------------------------------------------------

    async def put_resource(self, resource: ResourceRecord) -> ResourceRecord:
        return await self._run(lambda db: _writes.put_resource(self._queries, db, resource))

    async def get_resource(self, resource_id: str) -> ResourceRecord | None:
        return await self._run(lambda db: _reads.get_resource(self._queries, db, resource_id))

    async def list_resources(self, query: ResourceQuery) -> ResourceSlice:
        return await self._run(lambda db: _reads.list_resources(self._queries, db, query))

    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        return await self._run(lambda db: _writes.update_resource(self._queries, db, request))

    async def delete_resource(self, resource_id: str) -> DeletedResource:
        return await self._run(lambda db: _writes.delete_resource(self._queries, db, resource_id))

    # --- archive memories -------------------------------------------------------------------------

    async def save_memories(self, request: SaveMemories) -> None:
        await self._run(lambda db: _writes.save_memories(self._queries, db, request))

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        return await self._run(lambda db: _reads.list_memories(self._queries, db, query))

    async def pin_memory(self, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
        return await self._run(lambda db: _writes.pin_memory(self._queries, db, memory_id, pinned=pinned))

    async def delete_memories(self, actor: tuple[str, str], ids: Sequence[int] | None) -> int:
        return await self._run(lambda db: _writes.delete_memories(self._queries, db, actor, ids))

    # --- explain ----------------------------------------------------------------------------------

    async def explain_messages(self, query: MessageQuery) -> Explanation:
        return await self._explain(
            lambda db: _reads.list_messages(self._filters, db, query), filtered=bool(query.where)
        )

    async def explain_threads(self, query: ThreadQuery) -> Explanation:
        return await self._explain(
            lambda db: _reads.list_threads(self._filters, db, query), filtered=bool(query.where)
        )

    async def _explain(
        self, read: Callable[[_reads.Reader], Awaitable[object]], *, filtered: bool
    ) -> Explanation:
        async def explain(db: Session) -> Explanation:
            planned = Planned(db)
            await read(planned)
            return explanation(self.name, planned, filtered=filtered)

        return await self._run(explain)
