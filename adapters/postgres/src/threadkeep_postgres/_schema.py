"""The schema: numbered migrations, recorded in the database, and the choice of indexed metadata keys."""

from __future__ import annotations

import re
import time
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import AsyncConnection

from threadkeep.errors import InvalidArgumentError, SchemaVersionError, UnavailableError
from threadkeep.tokens import TOKEN_VERSION

from ._queries import Queries, Statement

__all__ = ["SCHEMA_VERSION", "choose_indexed_keys", "migrate", "migrations", "require_current", "version"]

_OLDEST_SERVER = 140000

_NO_TRIGRAMS = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.FeatureNotSupported,  # the server has no pg_trgm
    psycopg.errors.UndefinedFile,
    psycopg.errors.UniqueViolation,  # another process was faster
    psycopg.errors.DuplicateObject,
    psycopg.errors.ReadOnlySqlTransaction,
)

Connection = AsyncConnection[Any]


def migrations() -> dict[int, str]:
    """Each migration's script, by the version it makes."""
    folder = files("threadkeep_postgres").joinpath("sql/migrations")
    return {
        int(match[1]): file.read_text("utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if (match := re.fullmatch(r"(\d{4})_\w+\.sql", file.name))
    }


SCHEMA_VERSION = max(migrations())
"""The schema this code works with."""


async def _rows(db: Connection, statement: Statement) -> list[tuple[Any, ...]]:
    cursor = await db.execute(statement.sql, statement.parameters or None, prepare=False)
    return await cursor.fetchall() if cursor.description else []


async def version(db: Connection, queries: Queries) -> int:
    """The schema's version; 0 where there is none.

    Raises:
        UnavailableError: The server is too old, or the database's encoding cannot hold every character.
    """
    encoding, server, exists = (await _rows(db, queries.statement("state", {"schema": queries.schema})))[0]
    if server < _OLDEST_SERVER:
        raise UnavailableError(f"PostgreSQL 14 or later is needed, this server is {server // 10000}")
    if encoding != "UTF8":
        raise UnavailableError(f"the database's encoding must be UTF8 and is {encoding}")
    return (await _rows(db, queries.statement("version")))[0][0] if exists else 0


def require_current(found: int) -> None:
    """Refuse a schema that this code does not work with.

    Raises:
        SchemaVersionError: It is newer, or outdated.
    """
    if found > SCHEMA_VERSION:
        raise SchemaVersionError(found, SCHEMA_VERSION, "upgrade threadkeep-postgres")
    if found < SCHEMA_VERSION:
        raise SchemaVersionError(
            found, SCHEMA_VERSION, "run 'threadkeep migrate URL', or open it with migrate=True"
        )


async def migrate(db: Connection, queries: Queries, *, extras: bool = False) -> None:
    """Bring the schema up to date; one process does it, the others wait and find it done.

    Args:
        db: A connection outside of any transaction.
        queries: The statements.
        extras: Whether to look for the extension that archive recall can use, although the schema is current.

    Raises:
        SchemaVersionError: The schema is newer than this code. Nothing was changed.
    """
    found = await version(db, queries)
    if found != SCHEMA_VERSION:
        async with db.transaction():
            # A transaction's lock, not a session's: a pooler may give the next statement another session.
            await _rows(db, queries.statement("lock_migrations", {"schema": queries.schema}))
            await _rows(db, Statement(b"SET LOCAL statement_timeout = 0"))
            found = await version(db, queries)
            if found > SCHEMA_VERSION:
                require_current(found)
            if found < SCHEMA_VERSION:
                await _apply(db, queries, found)
    if extras or not found:
        await _index_texts(db, queries, online="CONCURRENTLY" if found else "")


async def _apply(db: Connection, queries: Queries, found: int) -> None:
    if not await _rows(db, queries.statement("has_schema", {"schema": queries.schema})):
        await _rows(db, queries.statement("create_schema"))  # else the role needs no right to create one
    await _rows(db, queries.statement("create_migration"))
    for number, script in migrations().items():
        if number > found:
            await db.execute(script.format(schema=f'"{queries.schema}"').encode())
            values = {"version": number, "token_version": TOKEN_VERSION, "now": time.time_ns() // 1000}
            await _rows(db, queries.statement("record_migration", values))


async def _index_texts(db: Connection, queries: Queries, *, online: str) -> None:
    """Make the trigram index where the extension is, or may be made. Recall is right without it."""
    done, trigrams = (await _rows(db, queries.statement("trigram_state")))[0]
    if done:
        return
    try:
        if trigrams is None:
            await _rows(db, queries.statement("create_trigrams"))
            _, trigrams = (await _rows(db, queries.statement("trigram_state")))[0]
        await _rows(db, queries.statement("create_text_index", trigrams=trigrams, online=online))
    except _NO_TRIGRAMS:
        return


async def choose_indexed_keys(
    db: Connection, queries: Queries, wanted: frozenset[str], *, migrate: bool
) -> frozenset[str]:
    """Index these keys and no others, rebuilding what that changes; reads go on meanwhile, writes wait.

    Raises:
        InvalidArgumentError: That would be a change, and *migrate* is False.
    """
    keys = queries.statement("indexed_keys")
    found = frozenset([row[0] for row in await _rows(db, keys)])
    if found == wanted:
        return wanted
    if not migrate:
        raise InvalidArgumentError(
            "url option metadata_index", "what the database has, unless migrate", "another"
        )
    async with db.transaction():
        await _rows(db, queries.statement("lock_indexed_keys"))
        await _rows(db, Statement(b"SET LOCAL statement_timeout = 0"))
        await _rows(db, queries.statement("choose_indexed_keys", {"keys": sorted(wanted)}))
        for name in ("drop_positions", "index_messages", "drop_thread_positions", "index_threads"):
            await _rows(db, queries.statement(name))
    return wanted
