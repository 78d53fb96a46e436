"""The floor of the PostgreSQL backend: what one would write by hand with ``psycopg`` 3 on the same tables.

Async connections, taken from a list of idle ones: less than any pool does. Statements are prepared at their
first use and planned once, results are binary, a call is one round trip where that is possible, and every
write is as durable as the adapter's. Index entries are the contract's tokens, so that either side finds what
the other wrote.

What it does not do: check arguments, look for existing messages or other owners, ask which keys are indexed
(all are), tell whether a page is the last, survive a lost connection, or translate errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from time import time_ns
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
import uuid_utils
from psycopg import AsyncConnection, AsyncCopy, AsyncRawCursor
from psycopg.types.numeric import Int8BinaryDumper

from threadkeep.jsontext import merge_patch
from threadkeep.tokens import metadata_tokens

from .libsql import BULK, Place

__all__ = ["PostgresFloor"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_MOST = 10
"""Connections at once: the adapter's default."""

_OURS = frozenset({"schema", "durability", "metadata_index", "pool_min", "pool_max", "pool_timeout_s"})
_OPTIONS = "-c plan_cache_mode=force_generic_plan -c jit=off"
_OWNER = """(
    SELECT r.id FROM {schema}.thread AS t JOIN {schema}.resource AS r ON r.key = t.resource_key
    WHERE t.id = $1
)"""
_THREAD = "(SELECT key FROM {schema}.thread WHERE id = $1)"
_PAGE = f"""
SELECT m.id, $1, {_OWNER}, m.role, m.type, m.content, m.metadata, m.created_at, m.seq
FROM {{schema}}.message AS m WHERE m.thread_key = {_THREAD}
"""
_NEWEST = _PAGE + "ORDER BY m.created_at DESC, m.seq DESC, m.id DESC LIMIT $2"
_NEWEST_WITH = f"""
SELECT m.id, $1, {_OWNER}, m.role, m.type, m.content, m.metadata, m.created_at, m.seq
FROM (
    SELECT p.created_at, p.seq, p.id FROM {{schema}}.position AS p
    WHERE p.thread_key = {_THREAD} AND p.token = $3
    ORDER BY p.created_at DESC, p.seq DESC, p.id DESC LIMIT $2
) AS p
CROSS JOIN LATERAL (SELECT * FROM {{schema}}.message AS m WHERE m.id = p.id OFFSET 0) AS m
ORDER BY p.created_at DESC, p.seq DESC, p.id DESC
"""
_AFTER = _PAGE + "AND (m.created_at, m.seq, m.id) > ($2, $3, $4) ORDER BY m.created_at, m.seq, m.id LIMIT $5"
_SKIP = _PAGE + "ORDER BY m.created_at, m.seq, m.id LIMIT $2 OFFSET $3"
_NEIGHBOURS = """(
    SELECT x.* FROM {{schema}}.message AS x
    WHERE x.thread_key = c.thread_key AND (x.created_at, x.seq, x.id) {way} (c.created_at, c.seq, c.id)
    ORDER BY x.created_at {order}, x.seq {order}, x.id {order} LIMIT {limit}
)"""
_WINDOWS = f"""
SELECT m.id, t.id, r.id, m.role, m.type, m.content, m.metadata, m.created_at, m.seq
FROM unnest($1::text[]) AS w (id)
CROSS JOIN LATERAL (SELECT * FROM {{schema}}.message AS m WHERE m.id = w.id OFFSET 0) AS c
CROSS JOIN LATERAL (
    SELECT c.*
    UNION ALL {_NEIGHBOURS.format(way="<", order="DESC", limit="$2")}
    UNION ALL {_NEIGHBOURS.format(way=">", order="ASC", limit="$3")}
) AS m
CROSS JOIN LATERAL (SELECT * FROM {{schema}}.thread AS t WHERE t.key = m.thread_key OFFSET 0) AS t
CROSS JOIN LATERAL (SELECT * FROM {{schema}}.resource AS r WHERE r.key = t.resource_key OFFSET 0) AS r
"""
_THREAD_COLUMNS = (
    "t.id, $1, t.title, t.metadata, t.working_memory, t.message_count, t.created_at, t.updated_at"
)
_RESOURCE = "(SELECT key FROM {schema}.resource WHERE id = $1)"
_THREADS = f"""
SELECT {_THREAD_COLUMNS} FROM {{schema}}.thread AS t WHERE t.resource_key = {_RESOURCE}
ORDER BY t.created_at DESC, t.id DESC LIMIT $2
"""
_THREADS_WITH = f"""
SELECT {_THREAD_COLUMNS}
FROM (
    SELECT p.created_at, p.id FROM {{schema}}.thread_position AS p
    WHERE p.resource_key = {_RESOURCE} AND p.token = $3 ORDER BY p.created_at DESC, p.id DESC LIMIT $2
) AS p
CROSS JOIN LATERAL (SELECT * FROM {{schema}}.thread AS t WHERE t.id = p.id OFFSET 0) AS t
ORDER BY p.created_at DESC, p.id DESC
"""
_TOUCHED = """
UPDATE {schema}.thread SET message_count = message_count + $2, updated_at = greatest($3, updated_at + 1)
WHERE id = $1 RETURNING key, resource_key
"""
_APPEND = f"""
WITH t AS ({_TOUCHED}), m AS (
    INSERT INTO {{schema}}.message
        (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
    SELECT $4, t.key, t.resource_key, $5, $6, $7, $8, $9::text[], $3, $3 FROM t
)
INSERT INTO {{schema}}.position (thread_key, resource_key, token, created_at, seq, id)
SELECT t.key, t.resource_key, u.token, $3, $3, $4 FROM t CROSS JOIN unnest($9::text[]) AS u (token)
"""
_APPEND_MANY = f"""
WITH t AS ({_TOUCHED}), g AS MATERIALIZED (
    SELECT * FROM json_to_recordset($4::json) AS g (
        id text, role text, type text, content text, metadata text, tokens text[], seq bigint
    )
), m AS (
    INSERT INTO {{schema}}.message
        (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
    SELECT g.id, t.key, t.resource_key, g.role, g.type, g.content, g.metadata, g.tokens, $3, g.seq
    FROM t CROSS JOIN g
)
INSERT INTO {{schema}}.position (thread_key, resource_key, token, created_at, seq, id)
SELECT t.key, t.resource_key, u.token, $3, g.seq, g.id
FROM t CROSS JOIN g CROSS JOIN unnest(g.tokens) AS u (token)
"""
_LOCK = "SELECT working_memory FROM {schema}.resource WHERE id = $1 FOR NO KEY UPDATE"
_STORE = """
UPDATE {schema}.resource
SET working_memory = $2, revision = revision + 1, updated_at = greatest($3, updated_at + 1) WHERE id = $1
"""
_CLONE = """
WITH t AS MATERIALIZED (SELECT * FROM {schema}.thread WHERE id = $1), made AS (
    INSERT INTO {schema}.thread
        (id, resource_key, title, metadata, tokens, working_memory, message_count, created_at, updated_at)
    SELECT $2, resource_key, 'Clone of ' || title, $3, '{{}}', working_memory, message_count, $4, $4 FROM t
    RETURNING key, resource_key
), c AS MATERIALIZED (
    SELECT m.*, gen_random_uuid()::text AS new_id,
        row_number() OVER (ORDER BY m.created_at, m.seq, m.id) - 1 AS rank
    FROM {schema}.message AS m WHERE m.thread_key = (SELECT key FROM t)
), copied AS (
    INSERT INTO {schema}.message
        (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
    SELECT c.new_id, made.key, made.resource_key, c.role, c.type, c.content, c.metadata, c.tokens,
        c.created_at, $4 + c.rank
    FROM c CROSS JOIN made
), indexed AS (
    INSERT INTO {schema}.position (thread_key, resource_key, token, created_at, seq, id)
    SELECT made.key, made.resource_key, u.token, c.created_at, $4 + c.rank, c.new_id
    FROM c CROSS JOIN made CROSS JOIN unnest(c.tokens) AS u (token)
)
SELECT id, new_id FROM c ORDER BY rank
"""
_KEYS = "SELECT id, key, resource_key FROM {schema}.thread WHERE id = ANY($1::text[])"
_COPY_MESSAGES = """
COPY {schema}.message (id, thread_key, resource_key, role, type, content, metadata, tokens, created_at, seq)
FROM STDIN (FORMAT BINARY)
"""
_COPY_INDEX = """
COPY {schema}.position (thread_key, resource_key, token, created_at, seq, id) FROM STDIN (FORMAT BINARY)
"""
_MESSAGE_TYPES = ("text", "int8", "int8", "text", "text", "text", "text", "text[]", "int8", "int8")
_INDEX_TYPES = ("int8", "int8", "text", "int8", "int8", "text")
_RECALL = """
SELECT m.id, m.content, m.pinned, m.actor_type, m.actor_id, m.created_at
FROM unnest($1::text[], $2::text[]) AS a (type, id)
CROSS JOIN LATERAL (
    SELECT * FROM {schema}.memory AS m
    WHERE m.actor_type = a.type AND m.actor_id = a.id AND NOT m.pinned AND strpos(m.folded, $3) > 0
    ORDER BY m.created_at DESC, m.id LIMIT $4
) AS m
ORDER BY m.created_at DESC, m.id LIMIT $4
"""

Connection = AsyncConnection[Any]


class PostgresFloor:
    """A few connections to a database whose schema the adapter made. Made by :meth:`connect`."""

    def __init__(self, conninfo: str, schema: str) -> None:
        self._conninfo, self._schema = conninfo, schema
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(_MOST)
        self._sql: dict[str, bytes] = {}

    @classmethod
    async def connect(cls, url: str) -> PostgresFloor:
        """Open the first connection to the database of an adapter's URL."""
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query))
        options = " ".join([_OPTIONS, given.get("options", "")]).strip()
        if given.get("durability") == "relaxed":
            options += " -c synchronous_commit=off"
        libpq = {**{name: value for name, value in given.items() if name not in _OURS}, "options": options}
        query = urlencode(libpq).replace("+", "%20")
        floor = cls(urlunsplit(parts._replace(query=query)), given.get("schema", "threadkeep"))
        async with floor._connection():
            return floor

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Connection]:
        async with self._free:
            connection = self._idle.pop() if self._idle else await self._new_connection()
            try:
                yield connection
            finally:
                self._idle.append(connection)

    async def _new_connection(self) -> Connection:
        connection = await AsyncConnection.connect(
            self._conninfo, autocommit=True, prepare_threshold=0, cursor_factory=AsyncRawCursor
        )
        connection.adapters.register_dumper(int, Int8BinaryDumper)  # one type for every int
        return connection

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._idle:
            await connection.close()

    def _text(self, statement: str) -> bytes:
        found = self._sql.get(statement)
        if found is None:
            quoted = '"' + self._schema.replace('"', '""') + '"'
            found = self._sql[statement] = statement.format(schema=quoted).encode()
        return found

    async def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        async with self._connection() as connection:
            cursor = connection.cursor(binary=True)
            await cursor.execute(self._text(statement), values)
            return await cursor.fetchall()

    async def _run(self, statement: str, *values: object) -> None:
        async with self._connection() as connection:
            await connection.execute(self._text(statement), values, binary=True)

    # --- reading ----------------------------------------------------------------------------------

    async def newest(self, thread_id: str, limit: int, token: str = "") -> list[dict[str, Any]]:
        """The newest messages of a thread, or of those with a token, newest first."""
        if token:
            return _messages(await self._rows(_NEWEST_WITH, thread_id, limit, token))
        return _messages(await self._rows(_NEWEST, thread_id, limit))

    async def after(self, thread_id: str, place: Place, limit: int) -> list[dict[str, Any]]:
        """The messages of a thread that follow a place, oldest first."""
        return _messages(await self._rows(_AFTER, thread_id, *place, limit))

    async def page(self, thread_id: str, skip: int, limit: int) -> list[dict[str, Any]]:
        """The messages of a thread after so many others, oldest first."""
        return _messages(await self._rows(_SKIP, thread_id, limit, skip))

    async def windows(self, ids: Sequence[str], before: int, after: int) -> list[dict[str, Any]]:
        """Messages by id with so many neighbours on either side, in the total order, each once."""
        rows = _messages(await self._rows(_WINDOWS, list(ids), before, after))
        unique = {row["id"]: row for row in rows}
        return sorted(unique.values(), key=lambda row: (row["created_at"], row["seq"], row["id"]))

    async def threads(self, resource_id: str, limit: int, token: str = "") -> list[dict[str, Any]]:
        """The newest threads of a resource, or of those with a token, newest first."""
        if token:
            rows = await self._rows(_THREADS_WITH, resource_id, limit, token)
        else:
            rows = await self._rows(_THREADS, resource_id, limit)
        return [
            {
                "id": identifier,
                "resource_id": owner,
                "title": title,
                "metadata": _decode(metadata),
                "working_memory": memory,
                "message_count": count,
                "created_at": _moment(created_at),
                "updated_at": _moment(updated_at),
            }
            for identifier, owner, title, metadata, memory, count, created_at, updated_at in rows
        ]

    async def recall(self, actor: tuple[str, str], folded: str, limit: int) -> list[dict[str, Any]]:
        """The newest unpinned memories of an actor and the shared ones that contain a folded text."""
        rows = await self._rows(_RECALL, [actor[0], "shared"], [actor[1], ""], folded, limit)
        return [
            {
                "id": identifier,
                "content": content,
                "pinned": pinned,
                "actor_type": kind,
                "actor_id": name,
                "created_at": _moment(created_at),
            }
            for identifier, content, pinned, kind, name, created_at in rows
        ]

    # --- writing ----------------------------------------------------------------------------------

    async def append(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Store one new message at the end of its thread."""
        now = time_ns() // 1000
        identifier = str(uuid_utils.uuid7())
        texts = (_encode(message["content"]).decode(), _encode(message["metadata"]).decode())
        kind = (message["role"], message["type"])
        tokens = list(metadata_tokens(message["metadata"]))
        await self._run(_APPEND, message["thread_id"], 1, now, identifier, *kind, *texts, tokens)
        return {**message, "id": identifier, "created_at": _moment(now), "seq": now}

    async def append_many(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Store new messages at the end of their thread, all or none."""
        now = time_ns() // 1000
        moment = _moment(now)
        stored: list[Mapping[str, Any]] = [
            {**message, "id": str(uuid_utils.uuid7()), "created_at": moment, "seq": now + rank}
            for rank, message in enumerate(messages)
        ]
        given = [
            {
                "id": message["id"],
                "role": message["role"],
                "type": message["type"],
                "content": _encode(message["content"]).decode(),
                "metadata": _encode(message["metadata"]).decode(),
                "tokens": metadata_tokens(message["metadata"]),
                "seq": message["seq"],
            }
            for message in stored
        ]
        await self._run(_APPEND_MANY, messages[0]["thread_id"], len(stored), now, _encode(given).decode())
        return stored

    async def merge(self, resource_id: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a patch into the working memory of a resource under its lock, in two round trips."""
        async with self._connection() as connection:
            async with connection.pipeline():
                await connection.execute(b"BEGIN")
                cursor = connection.cursor(binary=True)
                await cursor.execute(self._text(_LOCK), (resource_id,))
            document = merge_patch(_decode((await cursor.fetchall())[0][0]), dict(patch))
            async with connection.pipeline():
                values = (resource_id, _encode(document).decode(), time_ns() // 1000)
                await connection.execute(self._text(_STORE), values)
                await connection.execute(b"COMMIT")
        return document

    async def clone(self, source_id: str, copy_id: str) -> dict[str, str]:
        """Copy a thread under a new id; returns the messages' new ids by their old ones."""
        now = time_ns() // 1000
        mark = {"clone": {"sourceThreadId": source_id, "clonedAt": _moment(now)}}
        return dict(await self._rows(_CLONE, source_id, copy_id, _encode(mark).decode(), now))

    async def bulk(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Store many messages that have all of their fields, 10,000 in a transaction, and return how many."""
        found = iter(messages)
        count = 0
        async with self._connection() as connection:
            while batch := list(islice(found, BULK)):
                async with connection.transaction():
                    await self._copy(connection, batch)
                count += len(batch)
        return count

    async def _copy(self, connection: Connection, batch: list[Mapping[str, Any]]) -> None:
        counts: dict[str, int] = {}
        for message in batch:
            counts[message["thread_id"]] = counts.get(message["thread_id"], 0) + 1
        cursor = connection.cursor(binary=True)
        await cursor.execute(self._text(_KEYS), (list(counts),))
        keys = {name: (thread, resource) for name, thread, resource in await cursor.fetchall()}
        positions: list[tuple[Any, ...]] = []
        async with cursor.copy(self._text(_COPY_MESSAGES)) as copy:
            copy.set_types(_MESSAGE_TYPES)
            for message in batch:
                positions += await _copied(copy, message, keys[message["thread_id"]])
        positions.sort()  # neighbours in the index are written together
        async with cursor.copy(self._text(_COPY_INDEX)) as copy:
            copy.set_types(_INDEX_TYPES)
            for position in positions:
                await copy.write_row(position)
        now = time_ns() // 1000
        for name, count in counts.items():
            await cursor.execute(self._text(_TOUCHED), (name, count, now))


async def _copied(
    copy: AsyncCopy, message: Mapping[str, Any], keys: tuple[int, int]
) -> list[tuple[int | str, ...]]:
    """Write one message, and return its index entries."""
    tokens = metadata_tokens(message["metadata"])
    created_at = (message["created_at"] - _EPOCH) // _MICROSECOND
    texts = (_encode(message["content"]).decode(), _encode(message["metadata"]).decode())
    place = (created_at, message["seq"])
    await copy.write_row(
        (message["id"], *keys, message["role"], message["type"], *texts, list(tokens), *place)
    )
    return [(*keys, token, *place, message["id"]) for token in tokens]


def _messages(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [
        {
            "id": identifier,
            "thread_id": thread_id,
            "resource_id": resource_id,
            "role": role,
            "type": kind,
            "content": _decode(content),
            "metadata": _decode(metadata),
            "created_at": _moment(created_at),
            "seq": seq,
        }
        for identifier, thread_id, resource_id, role, kind, content, metadata, created_at, seq in rows
    ]


def _moment(us: int) -> datetime:
    return _EPOCH + timedelta(0, 0, us)
