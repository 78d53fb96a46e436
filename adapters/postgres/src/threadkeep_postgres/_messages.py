"""What the writing calls on messages do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence

from threadkeep.errors import LimitExceededError
from threadkeep.records import MessageRecord
from threadkeep.requests import DeleteMessages, Placement, SaveMessages, UpdateMessages

from . import _codec
from ._queries import Queries, Statement, Value
from ._session import LostRaceError, Row, Session

__all__ = ["delete_messages", "save_messages", "update_messages"]

_VALUE_BYTES = 200 * 1024 * 1024
"""The server's own limit is 1 GiB a value, of which an escape inside JSON can take five times its size."""
_BATCH_ROWS = 2_000
_BATCH_BYTES = 16 * 1024 * 1024


async def save_messages(queries: Queries, db: Session, request: SaveMessages) -> list[MessageRecord]:
    """Insert or replace messages: new ones of one thread in one statement."""
    _check_sizes(request.messages)
    thread_ids = request.thread_ids()
    owners = {message.resource_id for message in request.messages} - {""}
    if len(thread_ids) == 1 and len(owners) <= 1 and _is_one_batch(request.messages):
        stored = await _append(queries, db, request, thread_ids[0], owners)
        if stored is not None:
            return stored
        db.writing = False
    ids = [message.id for message in request.messages]
    _, threads, places = await db.begin(
        queries.statement("lock_threads", {"threads": thread_ids}),
        queries.statement("owners", {"threads": thread_ids}),
        queries.statement("placements", {"ids": ids}),
    )
    there = {row[0]: Placement(*row[1:5]) for row in places}
    records = request.resolve({row[0]: row[1] for row in threads}, there)
    keys = {row[0]: (row[2], row[3]) for row in threads}
    new = [record for record in records if record.id not in there]
    counts = Counter([record.thread_id for record in new])
    changes = {keys[name][0]: counts[name] for name in thread_ids}
    old = [record for record in records if record.id in there]
    *early, last = [
        *_written(queries, "insert_messages", new, keys),
        *_written(queries, "replace_messages", old, keys),
    ]
    for statement in early:
        await db.go_on(statement)
    await db.commit(last, _touching(queries, changes, request.now))
    return records


def _check_sizes(messages: Sequence[MessageRecord]) -> None:
    for message in messages:
        if len(message.content) > _VALUE_BYTES // 4 and len(message.content.encode()) > _VALUE_BYTES:
            raise LimitExceededError("200 MiB of content a message", f"{len(message.content.encode())} bytes")


def _is_one_batch(messages: Sequence[MessageRecord]) -> bool:
    return (
        len(messages) <= _BATCH_ROWS and sum([len(message.content) for message in messages]) <= _BATCH_BYTES
    )


async def _append(
    queries: Queries, db: Session, request: SaveMessages, thread_id: str, named: set[str]
) -> list[MessageRecord] | None:
    """Store messages if all are new and their thread is there and theirs; else nothing, and None."""
    owner = request.resource_id
    if named:
        (name,) = named
        if owner not in (None, name):
            return None
        owner = name
    done = await db.write(
        queries.statement(
            "append_messages",
            {
                "messages": _codec.given(request.messages),
                "ids": [message.id for message in request.messages],
                "thread": thread_id,
                "owner": owner,
                "change": len(request.messages),
                "now": request.now,
            },
        )
    )
    if not done.rows:
        return None
    return request.resolve({thread_id: done.rows[0][0]}, {})


def _batches(records: Sequence[MessageRecord]) -> Generator[list[MessageRecord]]:
    """Records in pieces that a statement takes."""
    batch: list[MessageRecord] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record.content)
        if len(batch) == _BATCH_ROWS or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _written(
    queries: Queries, name: str, records: Sequence[MessageRecord], keys: dict[str, tuple[int, int]]
) -> Generator[Statement]:
    for batch in _batches(records):
        yield queries.statement(name, {"messages": _codec.given(batch, keys)})


def _touching(queries: Queries, changes: dict[int, int], now: int) -> Statement:
    """Change the counters of threads by key, and their times."""
    values: dict[str, Value] = {"keys": list(changes), "changes": list(changes.values()), "now": now}
    return queries.statement("touch_threads", values)


async def _locked(
    queries: Queries, db: Session, ids: Sequence[str], targets: Sequence[str], *look: Statement
) -> tuple[set[int], list[list[Row]]]:
    """Begin a transaction that holds the locks of the threads of messages and of others; then look."""
    lock = queries.statement("lock_threads_of", {"ids": list(ids), "threads": list(targets)})
    locked, *found = await db.begin(lock, *look)
    return {row[0] for row in locked}, found


async def update_messages(queries: Queries, db: Session, request: UpdateMessages) -> list[MessageRecord]:
    """Change messages, moving them where asked."""
    ids, targets = request.ids(), request.targets()
    locked, (rows, threads) = await _locked(
        queries,
        db,
        ids,
        targets,
        queries.statement("stored_messages", {"ids": ids}),
        queries.statement("owners", {"threads": targets}),
    )
    if any(row[-2] not in locked for row in rows):  # moved while the locks were waited for
        raise LostRaceError
    stored = {row[0]: _codec.message(row[:-2]) for row in rows}
    changed = request.resolve(stored, {row[0]: row[1] for row in threads})
    if not changed:
        await db.abandon()
        return []
    _check_sizes(changed)
    keys = {row[1]: (row[-2], row[-1]) for row in rows} | {row[0]: (row[2], row[3]) for row in threads}
    changes: Counter[int] = Counter()
    for record in changed:
        changes[keys[stored[record.id].thread_id][0]] -= 1
        changes[keys[record.thread_id][0]] += 1
    written = _written(queries, "replace_messages", changed, keys)
    await db.commit(*written, _touching(queries, changes, request.now))
    return changed


async def delete_messages(queries: Queries, db: Session, request: DeleteMessages) -> int:
    """Delete messages."""
    locked, (rows,) = await _locked(
        queries, db, request.ids, (), queries.statement("placements", {"ids": list(request.ids)})
    )
    if any(row[-1] not in locked for row in rows):
        raise LostRaceError
    request.check({row[0]: Placement(*row[1:5]) for row in rows})
    if not rows:
        await db.abandon()
        return 0
    changes = Counter([row[-1] for row in rows])
    await db.commit(
        queries.statement("delete_messages", {"ids": [row[0] for row in rows]}),
        _touching(queries, {key: -count for key, count in changes.items()}, request.now),
    )
    return len(rows)
