"""What the conformance kit may use besides the adapter, to look behind its words and to break a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, Self, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection
from psycopg.abc import Params

from threadkeep import Store

from ._settings import Settings
from .adapter import PostgresAdapter
from .embedded import EmbeddedServer

__all__ = ["Probe"]

_COUNTERS = b"""
SELECT coalesce(sum(blocks), 0)::bigint
FROM (
    SELECT heap_blks_hit + heap_blks_read + coalesce(toast_blks_hit + toast_blks_read, 0)
    FROM pg_catalog.pg_statio_all_tables WHERE schemaname = $1
    UNION ALL
    SELECT idx_blks_hit + idx_blks_read FROM pg_catalog.pg_statio_all_indexes WHERE schemaname = $1
) AS s (blocks)
"""
_WRITE_DOWN = b"SELECT pg_catalog.pg_stat_force_next_flush()"
_FLUSHES = 150000  # the first version that can be told to write its counters down at once


class _Observed:
    """See :class:`threadkeep_conformance.probe.Observed`; work is in blocks of 8 KiB that were looked at."""

    def __init__(self) -> None:
        self.statements = self.rows = self.volume = 0
        self.work: int | None = None


class _SpyingCursor(AsyncRawCursor[Any]):
    observed: ClassVar[_Observed]

    async def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
        """Count a statement and have its session write down its counters as soon as it rests."""
        self.observed.statements += 1
        await super().execute(query, params, **options)
        if self.observed.work is not None:
            await AsyncRawCursor(self.connection).execute(_WRITE_DOWN)
        return self

    async def fetchall(self) -> list[Any]:
        """Count rows."""
        rows = cast("list[Sequence[object]]", await super().fetchall())
        self.observed.rows += len(rows)
        self.observed.volume += sum([len(value) for row in rows for value in row if isinstance(value, str)])
        return rows


class Probe:
    """The protocols of :mod:`threadkeep_conformance.probe` that PostgreSQL allows."""

    def __init__(self) -> None:
        self._servers: dict[int, EmbeddedServer] = {}

    # --- databases and versions -------------------------------------------------------------------

    def fresh_url(self, url: str, name: str) -> str:
        """The same database with another schema."""
        parts = urlsplit(url)
        options = [
            *[(key, value) for key, value in parse_qsl(parts.query) if key != "schema"],
            ("schema", name),
        ]
        return urlunsplit(parts._replace(query=urlencode(options)))

    async def discard(self, url: str) -> None:
        """Drop the schema."""
        await _run(url, b"DROP SCHEMA IF EXISTS {schema} CASCADE")

    async def versions(self, store: Store) -> Mapping[str, str]:
        """Driver and server."""
        async with _adapter(store).pool.lend() as lent:
            server = lent.connection.info.server_version
        return {
            "driver": f"psycopg {psycopg.__version__}",
            "server": f"PostgreSQL {server // 10000}.{server % 10000}",
        }

    # --- the driver's boundary --------------------------------------------------------------------

    @contextmanager
    def spy(self, store: Store) -> Generator[_Observed]:
        """Count statements, rows, text, and the blocks that the server looked at in this schema."""
        adapter, observed = _adapter(store), _Observed()
        pool, schema = adapter.pool, adapter.settings.schema
        seen: set[AsyncConnection[Any]] = set()

        async def write_down(connection: AsyncConnection[Any]) -> None:
            """Have what a session did before counted before."""
            nonlocal before
            if before is not None and connection not in seen:
                seen.add(connection)
                await AsyncRawCursor(connection).execute(_WRITE_DOWN)
                before = _blocks(db, schema)

        with Connection.connect(
            adapter.settings.conninfo, cursor_factory=psycopg.RawCursor, autocommit=True
        ) as db:
            before = observed.work = _blocks(db, schema)
            pool.on_lend, pool.cursor_factory = (
                write_down,
                type("_C", (_SpyingCursor,), {"observed": observed}),
            )
            try:
                yield observed
            finally:
                pool.on_lend, pool.cursor_factory = None, AsyncRawCursor
            after = _blocks(db, schema)
            observed.work = None if before is None or after is None else after - before

    # --- past the adapter -------------------------------------------------------------------------

    async def corrupt_message(self, url: str, message_id: str) -> None:
        """Overwrite the stored content of a message with what is not JSON."""
        await _run(url, b"UPDATE {schema}.message SET content = '[\"cut off' WHERE id = $1", message_id)

    async def set_schema_version(self, url: str, version: int) -> int:
        """Overwrite the version that the schema records."""
        ((before,),) = await _run(url, b"SELECT max(version) FROM {schema}.migration")
        await _run(url, b"DELETE FROM {schema}.migration WHERE version < $1", before)
        await _run(url, b"UPDATE {schema}.migration SET version = $1", version)
        return before

    @asynccontextmanager
    async def read_only(self, url: str, store: Store) -> AsyncGenerator[None]:
        """Let the store's sessions be read-only, as they are on a replica."""
        del url
        adapter = _adapter(store)
        libpq = adapter.settings.libpq
        before = libpq["options"]
        libpq["options"] += " -c default_transaction_read_only=on"
        await adapter.pool.drop_idle()
        try:
            yield
        finally:
            libpq["options"] = before
            await adapter.pool.drop_idle()

    # --- servers ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def private_server(self) -> AsyncGenerator[str]:
        """Start a server whose commits are durable."""
        server = await asyncio.to_thread(EmbeddedServer)
        try:
            await asyncio.to_thread(server.start)
            self._servers[server.port] = server
            yield server.url
        finally:
            self._servers.pop(server.port, None)
            await asyncio.to_thread(server.remove)

    async def kill(self, url: str) -> None:
        """Kill all processes of a private server at once."""
        await asyncio.to_thread(self._server(url).kill)

    async def start(self, url: str) -> None:
        """Start a private server again."""
        await asyncio.to_thread(self._server(url).start)

    async def cut_connections(self, url: str) -> None:
        """Terminate every session of a private server."""
        await _run(
            url,
            b"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            b" WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )

    def _server(self, url: str) -> EmbeddedServer:
        return self._servers[urlsplit(url).port or 0]


async def _run(url: str, text: bytes, *parameters: str | int) -> list[tuple[Any, ...]]:
    """The rows of a statement past the adapter, with ``{schema}`` filled in."""
    settings = Settings.parse(url)
    statement = text.replace(b"{schema}", f'"{settings.schema}"'.encode())
    async with await AsyncConnection.connect(
        settings.conninfo, autocommit=True, cursor_factory=AsyncRawCursor
    ) as db:
        cursor = await db.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description else []


def _adapter(store: Store) -> PostgresAdapter:
    adapter = getattr(store, "_adapter")  # noqa: B009  (private to applications, which have no use for it)
    found = getattr(adapter, "_adapter", adapter)  # the kit may have wrapped it
    if not isinstance(found, PostgresAdapter):
        raise TypeError("not a store on PostgreSQL")
    return found


def _blocks(db: Connection[Any], schema: str) -> int | None:
    """The blocks of a schema looked at so far; None where the server would not say it in time."""
    if db.info.server_version < _FLUSHES:
        return None
    ((blocks,),) = db.execute(_COUNTERS, [schema]).fetchall()
    return blocks
