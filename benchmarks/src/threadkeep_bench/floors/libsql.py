"""The floor of the embedded backend: what one would write by hand with ``sqlite3`` on the same file.

Same tables and indexes, same durability (WAL, ``synchronous=FULL``) and page cache, the same write of
``updated_at`` and of the message counter, JSON decoded into plain dicts. A method is one transaction and runs
on the caller's thread; :meth:`LibsqlFloor.hop` runs one on the floor's own thread, which is the one hop that
an async application cannot avoid. Index entries are the contract's tokens, so that either side finds what the
other wrote.

What it does not do: check arguments, find an existing message, tell whether a page is the last, or translate
errors.

``python -m threadkeep_bench.floors.libsql FILE DATABASE`` stores the messages of an export in a database that
has their threads, and prints how many it stored a second: the rest of ``threadkeep import``'s work included.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, time_ns
from typing import Any, ParamSpec, TypeVar

import msgspec
import uuid_utils

from threadkeep.tokens import metadata_tokens

from .export import messages_of

__all__ = ["LibsqlFloor", "Place"]

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
Place = tuple[int, int, str]
"""A message's ``created_at`` in microseconds, ``seq`` and ``id``."""

BULK = 10_000
"""Messages in one transaction of a bulk insert: at 1,000 it is 0.6 times as fast, at 50,000 1.2 times."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_PAGE = """
SELECT m.id, m.role, m.type, m.content, m.metadata, m.created_at, m.seq, r.id
FROM threadkeep_thread AS t
CROSS JOIN threadkeep_resource AS r ON r.key = t.resource_key
CROSS JOIN threadkeep_position AS p ON p.scope = t.key
CROSS JOIN threadkeep_message AS m ON m.key = p.key
WHERE t.id = ? AND p.token = ?
"""
_NEWEST = _PAGE + "ORDER BY p.created_at DESC, p.seq DESC, p.id DESC LIMIT ?"
_AFTER = _PAGE + "AND (p.created_at, p.seq, p.id) > (?, ?, ?) ORDER BY p.created_at, p.seq, p.id LIMIT ?"
_THREAD = "SELECT key, resource_key FROM threadkeep_thread WHERE id = ?"
_NEXT_KEY = "SELECT coalesce(max(key), 0) + 1 FROM threadkeep_message"
_INSERT = """
INSERT INTO threadkeep_message (key, id, thread_key, role, type, content, metadata, tokens, created_at, seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_INDEX = """
INSERT INTO threadkeep_position (scope, token, created_at, seq, id, key) VALUES (?, ?, ?, ?, ?, ?)
"""
_SKIP = _PAGE + "ORDER BY p.created_at, p.seq, p.id LIMIT ? OFFSET ?"
_WINDOW = """
WITH target AS (SELECT thread_key, created_at, seq, id, key FROM threadkeep_message WHERE id = ?),
wanted (key) AS (
    SELECT key FROM target
    UNION ALL
    SELECT key FROM (
        SELECT p.key FROM target AS g CROSS JOIN threadkeep_position AS p
        WHERE p.scope = g.thread_key AND p.token = '' AND
            (p.created_at, p.seq, p.id) < (g.created_at, g.seq, g.id)
        ORDER BY p.created_at DESC, p.seq DESC, p.id DESC LIMIT ?
    )
    UNION ALL
    SELECT key FROM (
        SELECT p.key FROM target AS g CROSS JOIN threadkeep_position AS p
        WHERE p.scope = g.thread_key AND p.token = '' AND
            (p.created_at, p.seq, p.id) > (g.created_at, g.seq, g.id)
        ORDER BY p.created_at, p.seq, p.id LIMIT ?
    )
)
SELECT m.id, t.id, r.id, m.role, m.type, m.content, m.metadata, m.created_at, m.seq
FROM wanted
CROSS JOIN threadkeep_message AS m ON m.key = wanted.key
CROSS JOIN threadkeep_thread AS t ON t.key = m.thread_key
CROSS JOIN threadkeep_resource AS r ON r.key = t.resource_key
"""
_THREAD_COLUMNS = (
    "t.id, r.id, t.title, t.metadata, t.working_memory, t.message_count, t.created_at, t.updated_at"
)
_THREADS = f"""
SELECT {_THREAD_COLUMNS}
FROM threadkeep_resource AS r
CROSS JOIN threadkeep_thread AS t ON t.resource_key = r.key
WHERE r.id = ? ORDER BY t.created_at DESC, t.id DESC LIMIT ?
"""
_THREADS_WITH = f"""
SELECT {_THREAD_COLUMNS}
FROM threadkeep_resource AS r
CROSS JOIN threadkeep_thread_position AS p ON p.scope = -r.key
CROSS JOIN threadkeep_thread AS t ON t.key = p.key
WHERE r.id = ? AND p.token = ? ORDER BY p.created_at DESC, p.id DESC LIMIT ?
"""
_MERGE = """
UPDATE threadkeep_resource
SET working_memory = json_patch(working_memory, ?), revision = revision + 1,
    updated_at = max(?, updated_at + 1)
WHERE id = ? RETURNING working_memory
"""
_COPY_THREAD = """
INSERT INTO threadkeep_thread
    (id, resource_key, title, metadata, tokens, working_memory, message_count, created_at, updated_at)
SELECT ?, resource_key, 'Clone of ' || title, ?, '{}', working_memory, message_count, ?, ?
FROM threadkeep_thread WHERE id = ?
RETURNING key, resource_key
"""
_COPIED = """
SELECT p.id, p.key FROM threadkeep_thread AS t
CROSS JOIN threadkeep_position AS p ON p.scope = t.key
WHERE t.id = ? AND p.token = '' ORDER BY p.created_at, p.seq, p.id
"""
_COPIES = """
CREATE TEMP TABLE IF NOT EXISTS floor_copy (old_key INTEGER PRIMARY KEY, rank INTEGER, new_id TEXT)
"""
_COPY_MESSAGES = """
INSERT INTO threadkeep_message (key, id, thread_key, role, type, content, metadata, tokens, created_at, seq)
SELECT ? + c.rank, c.new_id, ?, m.role, m.type, m.content, m.metadata, m.tokens, m.created_at, ? + c.rank
FROM floor_copy AS c CROSS JOIN threadkeep_message AS m ON m.key = c.old_key
"""
_COPY_INDEX = """
INSERT INTO threadkeep_position (scope, token, created_at, seq, id, key)
SELECT ?, p.token, p.created_at, ? + c.rank, c.new_id, ? + c.rank
FROM threadkeep_position AS p CROSS JOIN floor_copy AS c ON c.old_key = p.key
WHERE p.scope = (SELECT key FROM threadkeep_thread WHERE id = ?)
ORDER BY p.token, p.created_at, c.rank
"""
_FIELDS = ("id", "thread_id", "resource_id", "role", "type", "content", "metadata", "created_at", "seq")
_RECALL = """
SELECT id, content, pinned, actor_type, actor_id, created_at FROM threadkeep_memory
WHERE actor_type = ? AND actor_id = ? AND NOT pinned AND instr(folded, ?) > 0
ORDER BY created_at DESC, id LIMIT ?
"""
_TOUCH = """
UPDATE threadkeep_thread SET message_count = message_count + ?, updated_at = max(?, updated_at + 1)
WHERE key = ?
"""


class LibsqlFloor:
    """One connection to a database whose schema the adapter made, and one thread.

    Args:
        path: The database file.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16000"):
            self._db.execute(f"PRAGMA {pragma}")
        self._thread = ThreadPoolExecutor(1, "floor")

    async def hop(
        self, call: Callable[Arguments, Result], *args: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Run a method on the floor's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(call, *args, **named))

    def close(self) -> None:
        """Release the file and the thread."""
        self._thread.shutdown()
        self._db.close()

    def newest(self, thread_id: str, limit: int, token: str = "") -> list[dict[str, Any]]:
        """The newest messages of a thread, or of those with a token, newest first."""
        return self._messages(thread_id, _NEWEST, (thread_id, token, limit))

    def after(self, thread_id: str, place: Place, limit: int) -> list[dict[str, Any]]:
        """The messages of a thread that follow a place, oldest first."""
        return self._messages(thread_id, _AFTER, (thread_id, "", *place, limit))

    def page(self, thread_id: str, skip: int, limit: int) -> list[dict[str, Any]]:
        """The messages of a thread after so many others, oldest first."""
        return self._messages(thread_id, _SKIP, (thread_id, "", limit, skip))

    def windows(self, ids: Sequence[str], before: int, after: int) -> list[dict[str, Any]]:
        """Messages by id with so many neighbours on either side, in the total order, each once."""
        found: dict[str, dict[str, Any]] = {}
        for wanted in ids:
            for values in self._db.execute(_WINDOW, (wanted, before, after)):
                row: dict[str, Any] = dict(zip(_FIELDS, values, strict=True))
                row["content"], row["metadata"] = _decode(row["content"]), _decode(row["metadata"])
                row["created_at"] = _moment(row["created_at"])
                found[row["id"]] = row
        return sorted(found.values(), key=lambda row: (row["created_at"], row["seq"], row["id"]))

    def threads(self, resource_id: str, limit: int, token: str = "") -> list[dict[str, Any]]:
        """The newest threads of a resource, or of those with a token, newest first."""
        sql, values = (_THREADS_WITH, (token, limit)) if token else (_THREADS, (limit,))
        return [
            {
                "id": identifier,
                "resource_id": owner,
                "title": title,
                "metadata": _decode(metadata),
                "working_memory": working_memory,
                "message_count": message_count,
                "created_at": _moment(created_at),
                "updated_at": _moment(updated_at),
            }
            for (
                *(identifier, owner, title, metadata, working_memory, message_count, created_at),
                updated_at,
            ) in self._db.execute(sql, (resource_id, *values))
        ]

    def recall(self, actor: tuple[str, str], folded: str, limit: int) -> list[dict[str, Any]]:
        """The newest unpinned memories of an actor and the shared ones that contain a folded text."""
        rows = [
            row
            for kind, name in (actor, ("shared", ""))
            for row in self._db.execute(_RECALL, (kind, name, folded, limit))
        ]
        rows.sort(key=lambda row: (-row[-1], row[0]))
        names = ("id", "content", "pinned", "actor_type", "actor_id")
        return [
            {**dict(zip(names, row, strict=False)), "created_at": _moment(row[-1])} for row in rows[:limit]
        ]

    def _messages(self, thread_id: str, sql: str, parameters: tuple[str | int, ...]) -> list[dict[str, Any]]:
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
            for identifier, role, kind, content, metadata, created_at, seq, resource_id in self._db.execute(
                sql, parameters
            )
        ]

    def append(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Store one new message at the end of its thread.

        Args:
            message: With ``thread_id, role, type, content`` and ``metadata``.

        Returns:
            The same with ``id``, ``created_at`` and ``seq``.
        """
        now = time_ns() // 1000
        identifier = str(uuid_utils.uuid7())
        stored = {**message, "id": identifier, "created_at": _moment(now), "seq": now}
        tokens = metadata_tokens(message["metadata"])
        with self._transaction():
            thread, resource = self._db.execute(_THREAD, (message["thread_id"],)).fetchone()
            key: int = self._db.execute(_NEXT_KEY).fetchone()[0]
            self._db.execute(_INSERT, _row(key, thread, stored, tokens, now))
            positions = _positions((thread, -resource), tokens, (now, now, identifier), key)
            self._db.executemany(_INDEX, positions)
            self._db.execute(_TOUCH, (1, now, thread))
        return stored

    def append_many(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Store new messages at the end of their thread, all or none."""
        now = time_ns() // 1000
        moment = _moment(now)
        stored: list[Mapping[str, Any]] = [
            {**message, "id": str(uuid_utils.uuid7()), "created_at": moment, "seq": now + rank}
            for rank, message in enumerate(messages)
        ]
        with self._transaction():
            self._insert(stored)
        return stored

    def merge(self, resource_id: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a patch into the working memory of a resource; returns the document."""
        rows = self._db.execute(_MERGE, (_encode(patch).decode(), time_ns() // 1000, resource_id)).fetchall()
        return _decode(rows[0][0])

    def clone(self, source_id: str, copy_id: str) -> dict[str, str]:
        """Copy a thread under a new id; returns the messages' new ids by their old ones."""
        now = time_ns() // 1000
        mark = {"clone": {"sourceThreadId": source_id, "clonedAt": _moment(now)}}
        with self._transaction():
            self._db.execute(_COPIES)
            self._db.execute("DELETE FROM floor_copy")
            rows = self._db.execute(_COPIED, (source_id,)).fetchall()
            ids = {old: str(uuid_utils.uuid7()) for old, _ in rows}
            copies = [(key, rank, ids[old]) for rank, (old, key) in enumerate(rows)]
            self._db.executemany("INSERT INTO floor_copy (old_key, rank, new_id) VALUES (?, ?, ?)", copies)
            values = (copy_id, _encode(mark).decode(), now, now, source_id)
            [(thread, resource)] = self._db.execute(_COPY_THREAD, values).fetchall()
            first: int = self._db.execute(_NEXT_KEY).fetchone()[0]
            self._db.execute(_COPY_MESSAGES, (first, thread, now))
            for scope in (thread, -resource):
                self._db.execute(_COPY_INDEX, (scope, now, first, source_id))
        return ids

    def bulk(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Store many new messages, 10,000 in a transaction, and return how many.

        Args:
            messages: With ``id, thread_id, role, type, content, metadata, created_at`` (a datetime), ``seq``.
        """
        found = iter(messages)
        count = 0
        while batch := list(islice(found, BULK)):
            with self._transaction():
                self._insert(batch)
            count += len(batch)
        return count

    def _insert(self, batch: list[Mapping[str, Any]]) -> None:
        threads: dict[str, tuple[int, int]] = {}
        counts: dict[int, int] = {}
        rows: list[tuple[Any, ...]] = []
        positions: list[tuple[Any, ...]] = []
        for key, message in enumerate(batch, self._db.execute(_NEXT_KEY).fetchone()[0]):
            name = message["thread_id"]
            if name not in threads:
                threads[name] = self._db.execute(_THREAD, (name,)).fetchone()
            thread, resource = threads[name]
            counts[thread] = counts.get(thread, 0) + 1
            tokens = metadata_tokens(message["metadata"])
            created_at = (message["created_at"] - _EPOCH) // _MICROSECOND
            rows.append(_row(key, thread, message, tokens, created_at))
            place = (created_at, message["seq"], message["id"])
            positions.extend(_positions((thread, -resource), tokens, place, key))
        self._db.executemany(_INSERT, rows)
        positions.sort()  # neighbours in the index are written together: a fifth faster
        self._db.executemany(_INDEX, positions)
        now = time_ns() // 1000
        self._db.executemany(_TOUCH, [(count, now, thread) for thread, count in counts.items()])

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise


def _moment(us: int) -> datetime:
    return _EPOCH + timedelta(0, 0, us)


def _row(
    key: int, thread: int, message: Mapping[str, Any], tokens: tuple[str, ...], created_at: int
) -> tuple[str | int, ...]:
    return (
        key,
        message["id"],
        thread,
        message["role"],
        message["type"],
        _encode(message["content"]).decode(),
        _encode(message["metadata"]).decode(),
        _encode(dict([token.split("=", 1) for token in tokens])).decode(),
        created_at,
        message["seq"],
    )


def _positions(
    scopes: tuple[int, int], tokens: tuple[str, ...], place: Place, key: int
) -> list[tuple[int | str, ...]]:
    return [(scope, token, *place, key) for scope in scopes for token in ("", *tokens)]


def _main(export: str, database: str) -> None:
    floor = LibsqlFloor(Path(database))
    start = perf_counter()
    count = floor.bulk(messages_of(Path(export)))
    sys.stdout.write(f"{count / (perf_counter() - start):.0f}\n")
    floor.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
