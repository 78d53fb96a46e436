"""The embedded backend: one file, one writer, concurrent readers."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, TypeVar

from threadkeep.adapter import StorageAdapter
from threadkeep.capabilities import Capabilities
from threadkeep.errors import InvalidArgumentError, SchemaVersionError
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
from threadkeep.tokens import is_filter_key
from threadkeep.urls import StoreUrl

from . import _reads, _schema, _writes
from ._driver import Connection, DriverError, Value
from ._errors import contract_error
from ._workers import Workers
from .plugin import SPEC

__all__ = ["LibsqlAdapter"]

Result = TypeVar("Result")

_READERS = 4
_OPTIONS = frozenset({"durability", "metadata_index", "busy_timeout_s"})


class LibsqlAdapter(StorageAdapter):
    """Each call is one hop to a thread: the writer's or one of four readers', each with its connection."""

    name = "libsql"

    def __init__(self, path: Path, *, durability: Literal["full", "relaxed"], busy_timeout_s: float) -> None:
        self.capabilities = Capabilities(SPEC.support)
        self._path = str(path)
        self._durability: Literal["full", "relaxed"] = durability
        self._busy_timeout_s = busy_timeout_s
        self._writer = Workers(1, "threadkeep-libsql-writer")
        self._readers = Workers(_READERS, "threadkeep-libsql-reader")
        self._local = threading.local()
        self._connections: list[Connection] = []

    @classmethod
    async def connect(cls, url: str, *, migrate: bool) -> LibsqlAdapter:
        """Open the file of a URL; see :class:`threadkeep.hookspecs.Connect`."""
        parsed = StoreUrl.parse(url, known=_OPTIONS)
        path = _path_of(parsed)
        wanted = _wanted_keys(parsed.options.get("metadata_index"))
        durability = "full" if parsed.choice("durability", ("full", "relaxed")) == "full" else "relaxed"
        busy_timeout_s = parsed.number("busy_timeout_s", 30, least=0, most=3600)
        if not migrate and not await asyncio.to_thread(_may_exist, path):
            remedy = "there is no such file; open it with migrate=True"
            raise SchemaVersionError(0, _schema.SCHEMA_VERSION, remedy)
        adapter = cls(path, durability=durability, busy_timeout_s=busy_timeout_s)
        try:
            await adapter._prepare(wanted, migrate=migrate)
        except BaseException:
            await asyncio.shield(adapter.close())
            raise
        return adapter

    async def _prepare(self, wanted: frozenset[str] | None, *, migrate: bool) -> None:
        def prepare(db: Connection) -> None:
            found = _schema.version(db)
            if not migrate or found > _schema.SCHEMA_VERSION:
                _schema.require_current(found)  # before anything is written, the journal mode included
            db.use_write_ahead_log()
            if migrate:
                _schema.migrate(db)
                _schema.forget_statistics(db)
            if wanted is None or wanted == _schema.indexed_keys(db):
                return
            if not migrate:
                raise InvalidArgumentError(
                    "url option metadata_index", "what the file has, unless migrate", "another"
                )
            _schema.choose_indexed_keys(db, wanted)

        await self._in_thread(self._writer, prepare, writing=True)

    # --- threads of execution ---------------------------------------------------------------------

    def _connection(self) -> Connection:
        """The calling thread's connection, opened at its first use."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = Connection(
                self._path, durability=self._durability, busy_timeout_s=self._busy_timeout_s
            )
            self._local.connection = connection
            self._connections.append(connection)
        return connection

    def _in_thread(
        self, workers: Workers, call: Callable[[Connection], Result], *, writing: bool
    ) -> Awaitable[Result]:
        def run(is_abandoned: Callable[[], bool]) -> Result:
            try:
                connection = self._connection()
                connection.is_abandoned = is_abandoned
                return call(connection)
            except DriverError as exc:
                raise contract_error(exc, self._path, writing=writing) from exc

        # A cancelled call that has the lock runs to its end there, so it is applied whole or not at all.
        return workers.run(run)

    def _write(self, call: Callable[[Connection], Result]) -> Awaitable[Result]:
        def in_transaction(db: Connection) -> Result:
            with db.transaction():
                return call(db)

        return self._in_thread(self._writer, in_transaction, writing=True)

    def _read(self, call: Callable[[Connection], Result]) -> Awaitable[Result]:
        return self._in_thread(self._readers, call, writing=False)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.stop()
        self._readers.stop()
        for connection in self._connections:
            connection.close()

    async def migrate(self) -> None:
        await self._in_thread(self._writer, _schema.migrate, writing=True)

    # --- threads ----------------------------------------------------------------------------------

    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        return await self._write(lambda db: _writes.write_thread(db, request))

    async def get_thread(self, thread_id: str) -> ThreadRecord | None:
        return await self._read(lambda db: _reads.get_thread(db, thread_id))

    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        return await self._read(lambda db: _reads.list_threads(db, query))

    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        return await self._write(lambda db: _writes.update_thread(db, request))

    async def delete_thread(self, thread_id: str, resource_id: str | None) -> bool:
        return await self._write(lambda db: _writes.delete_thread(db, thread_id, resource_id))

    async def clear_thread(self, thread_id: str, resource_id: str | None, now: int) -> int:
        return await self._write(lambda db: _writes.clear_thread(db, thread_id, resource_id, now))

    async def transfer_thread(self, request: TransferThread) -> ThreadRecord:
        return await self._write(lambda db: _writes.transfer_thread(db, request))

    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        return await self._write(lambda db: _writes.clone_thread(db, request))

    # --- messages ---------------------------------------------------------------------------------

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        return await self._write(lambda db: _writes.save_messages(db, request))

    async def get_messages(self, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
        return await self._read(lambda db: _reads.get_messages(db, ids, resource_id))

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        return await self._read(lambda db: _reads.list_messages(db, query))

    async def update_messages(self, request: UpdateMessages) -> list[MessageRecord]:
        return await self._write(lambda db: _writes.update_messages(db, request))

    async def delete_messages(self, request: DeleteMessages) -> int:
        return await self._write(lambda db: _writes.delete_messages(db, request))

    # --- resources --------------------------------------------------------------------------------

    async def put_resource(self, resource: ResourceRecord) -> ResourceRecord:
        return await self._write(lambda db: _writes.put_resource(db, resource))

    async def get_resource(self, resource_id: str) -> ResourceRecord | None:
        return await self._read(lambda db: _reads.get_resource(db, resource_id))

    async def list_resources(self, query: ResourceQuery) -> ResourceSlice:
        return await self._read(lambda db: _reads.list_resources(db, query))

    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        return await self._write(lambda db: _writes.update_resource(db, request))

    async def delete_resource(self, resource_id: str) -> DeletedResource:
        return await self._write(lambda db: _writes.delete_resource(db, resource_id))

    # --- archive memories -------------------------------------------------------------------------

    async def save_memories(self, request: SaveMemories) -> None:
        await self._write(lambda db: _writes.save_memories(db, request))

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        return await self._read(lambda db: _reads.list_memories(db, query))

    async def pin_memory(self, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
        return await self._write(lambda db: _writes.pin_memory(db, memory_id, pinned=pinned))

    async def delete_memories(self, actor: tuple[str, str], ids: Sequence[int] | None) -> int:
        return await self._write(lambda db: _writes.delete_memories(db, actor, ids))

    # --- explain ----------------------------------------------------------------------------------

    async def explain_messages(self, query: MessageQuery) -> Explanation:
        return await self._explain(lambda db: _reads.list_messages(db, query), filtered=bool(query.where))

    async def explain_threads(self, query: ThreadQuery) -> Explanation:
        return await self._explain(lambda db: _reads.list_threads(db, query), filtered=bool(query.where))

    async def _explain(self, read: Callable[[_reads.Reader], object], *, filtered: bool) -> Explanation:
        def explain(db: Connection) -> list[str]:
            planned = _Planned(db)
            read(planned)
            return planned.plan

        plan = await self._read(explain)
        return Explanation(
            adapter=self.name,
            filter="native" if filtered else None,
            order="native",
            limit="native",
            indexes=_indexes_of(plan),
            rows_examined=None,
            plan=plan,
        )


_TABLES = {"p": "threadkeep_position", "tp": "threadkeep_thread_position", "i": "threadkeep_indexed_key"}


def _indexes_of(plan: list[str]) -> list[str]:
    """The indexes a plan names; a table without rowid is its own. Look-ups of rows by their key are none."""
    pattern = re.compile(r"SEARCH (\w+) USING (?:COVERING INDEX |INDEX |PRIMARY KEY)(\w*)")
    searches: list[tuple[str, str]] = pattern.findall("\n".join(plan))
    found = [index or _TABLES.get(table, table) for table, index in searches]
    return list(dict.fromkeys(found))


class _Planned:
    """A reader that writes down the plan of each statement it runs."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self.plan: list[str] = []

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        lines = [row[3] for row in self._db.query("EXPLAIN QUERY PLAN " + sql, parameters)]
        self.plan += [line for line in lines if line not in self.plan]
        return self._db.query(sql, parameters)

    def snapshot(self) -> AbstractContextManager[None]:
        """As of the connection."""
        return self._db.snapshot()


def _path_of(url: StoreUrl) -> Path:
    if url.authority:
        rule = f"of the form {url.scheme}:relative.db or {url.scheme}:///absolute/path.db"
        raise InvalidArgumentError("url", rule, f"a {url.scheme} URL with a host")
    if url.path == ":memory:":
        raise InvalidArgumentError("url", "one that names a file (in memory: 'memory:')", "':memory:'")
    if not url.path or url.path.endswith("/") or "\0" in url.path:
        raise InvalidArgumentError(
            "url", f"one that names a file, such as {url.scheme}:memory.db", "no file name"
        )
    return Path(url.path).absolute()


def _may_exist(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # opening it says what is wrong


def _wanted_keys(option: str | None) -> frozenset[str] | None:
    if option is None:
        return None
    if option in ("all", "none"):
        return frozenset("*" if option == "all" else "")
    keys = option.split(",")
    for key in keys:
        if not is_filter_key(key):
            raise InvalidArgumentError(
                "url option metadata_index", "all, none or filter keys with commas", repr(key)
            )
    return frozenset(keys)
