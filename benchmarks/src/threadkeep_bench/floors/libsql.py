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
from collections.abc import Callable, Generator, Iterable, Mapping
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


class _Line(msgspec.Struct):
    kind: str
    thread_id: str = ""
    id: str = ""
    role: str = ""
    type: str = ""
    content: Any = None
    metadata: dict[str, Any] = {}
    created_at: datetime | None = None
    seq: int = 0


def _messages_of(export: Path) -> Iterable[dict[str, Any]]:
    decode = msgspec.json.Decoder(_Line).decode
    with export.open("rb") as lines:
        for line in lines:
            found = decode(line)
            if found.kind == "message":
                yield msgspec.structs.asdict(found)


def _main(export: str, database: str) -> None:
    floor = LibsqlFloor(Path(database))
    start = perf_counter()
    count = floor.bulk(_messages_of(Path(export)))
    sys.stdout.write(f"{count / (perf_counter() - start):.0f}\n")
    floor.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
