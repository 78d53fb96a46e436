"""What the writing calls on threads, resources and archive memories do.

A call that depends on what is stored locks it, looks at it, lets the request decide, and writes: two round
trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import UNSET

from threadkeep.errors import AlreadyExistsError, OwnershipError
from threadkeep.models import DeletedResource
from threadkeep.records import MemoryRecord, ResourceRecord, ThreadRecord
from threadkeep.requests import (
    ClonedThread,
    CloneThread,
    SaveMemories,
    TransferThread,
    UpdateResource,
    UpdateThread,
    WriteThread,
)

from . import _codec, _queries
from ._queries import Queries, Statement, Value
from ._session import LostRaceError, Row, Session

__all__ = [
    "clear_thread",
    "clone_thread",
    "delete_memories",
    "delete_resource",
    "delete_thread",
    "pin_memory",
    "put_resource",
    "save_memories",
    "transfer_thread",
    "update_resource",
    "update_thread",
    "write_thread",
]


class _Stored(NamedTuple):
    """A stored thread, with its key and its resource's."""

    record: ThreadRecord
    key: int
    resource_key: int


def _stored(rows: list[Row]) -> _Stored | None:
    return _Stored(_codec.thread(rows[0][:-2]), rows[0][-2], rows[0][-1]) if rows else None


def _thread_values(record: ThreadRecord) -> dict[str, Value]:
    return {
        "id": record.id,
        "resource": record.resource_id,
        "title": record.title,
        "metadata": record.metadata,
        "tokens": list(record.tokens),
        "working_memory": record.working_memory,
        "message_count": record.message_count,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


async def _locked_thread(
    queries: Queries, db: Session, thread_id: str, *first: Statement, lock: str = "lock_thread"
) -> tuple[_Stored | None, list[list[Row]]]:
    """Begin a transaction that holds a thread's lock; returns it, and the rows of the statements before."""
    found = await db.begin(
        *first,
        queries.statement(lock, {"id": thread_id}),
        queries.statement("locked_thread", {"id": thread_id}),
    )
    return _stored(found[-1]), found[: len(first)]


# --- threads --------------------------------------------------------------------------------------


async def write_thread(queries: Queries, db: Session, request: WriteThread) -> tuple[ThreadRecord, bool]:
    """Create or replace a thread."""
    created = request.resolve(None)
    if created is not None:
        done = await db.write(queries.statement("create_thread", _thread_values(created)))
        if done.rows:
            return created, True
        db.writing = False
    stored, _ = await _locked_thread(queries, db, request.thread.id)
    if stored is None:  # it was there a moment ago, or its owner was being made
        raise LostRaceError
    record = request.resolve(stored.record)
    if record is None:
        await db.abandon()
        return stored.record, False
    await db.commit(_replacing(queries, record, stored.key, stored.resource_key))
    return record, True


def _replacing(queries: Queries, record: ThreadRecord, key: int, resource_key: int) -> Statement:
    values = {**_thread_values(record), "key": key, "resource_key": resource_key}
    return queries.statement("replace_thread", values)


async def update_thread(queries: Queries, db: Session, request: UpdateThread) -> ThreadRecord:
    """Change a thread: in one statement where no metadata has to be merged."""
    if request.metadata is UNSET:
        values: dict[str, Value] = {
            "id": request.id,
            "owner": request.resource_id,
            "now": request.now,
            "title": None if request.title is UNSET else request.title,
            "if_title": None if request.if_title is UNSET else request.if_title,
            "sets_memory": request.working_memory is not UNSET,
            "working_memory": None if request.working_memory is UNSET else request.working_memory,
        }
        done = await db.write(queries.statement("change_thread", values))
        if done.rows:
            return _codec.thread(done.rows[0])
        db.writing = False
    stored, _ = await _locked_thread(queries, db, request.id)
    changed = request.apply(None if stored is None else stored.record)
    if stored is None:
        raise LostRaceError
    await db.commit(_replacing(queries, changed, stored.key, stored.resource_key))
    return changed


async def transfer_thread(queries: Queries, db: Session, request: TransferThread) -> ThreadRecord:
    """Give a thread to another resource, whose lock is taken first, as everywhere."""
    ensure = queries.statement("ensure_resource", {"resource": request.to_resource_id})
    stored, first = await _locked_thread(queries, db, request.id, ensure)
    changed = request.apply(None if stored is None else stored.record)
    if stored is None or not first[0]:
        raise LostRaceError
    resource_key = first[0][0][0]
    statements = [_replacing(queries, changed, stored.key, resource_key)]
    if resource_key != stored.resource_key:
        values = {"key": stored.key, "resource_key": resource_key}
        names = ("give_thread_positions", "give_messages", "give_positions")  # by the owner that still is
        statements = [*[queries.statement(name, values) for name in names], *statements]
    await db.commit(*statements)
    return changed


async def delete_thread(queries: Queries, db: Session, thread_id: str, resource_id: str | None) -> bool:
    """Delete a thread with its messages."""
    stored = await _owned_thread(queries, db, thread_id, resource_id, lock="claim_thread")
    if stored is None:
        return False
    names = ("delete_positions_of_thread", "delete_messages_of_thread", "delete_thread")
    await db.commit(*[queries.statement(name, {"key": stored.key}) for name in names])
    return True


async def clear_thread(
    queries: Queries, db: Session, thread_id: str, resource_id: str | None, now: int
) -> int:
    """Delete a thread's messages."""
    stored = await _owned_thread(queries, db, thread_id, resource_id)
    if stored is None:
        return 0
    count = stored.record.message_count
    if not count:
        await db.abandon()
        return 0
    values = {"key": stored.key, "change": -count, "now": now}
    names = ("delete_positions_of_thread", "delete_messages_of_thread", "touch_thread")
    await db.commit(*[queries.statement(name, values) for name in names])
    return count


async def _owned_thread(
    queries: Queries, db: Session, thread_id: str, resource_id: str | None, lock: str = "lock_thread"
) -> _Stored | None:
    """A locked thread, or None, the transaction over, where there is none; raises where it is another's."""
    stored, _ = await _locked_thread(queries, db, thread_id, lock=lock)
    if stored is None:
        await db.abandon()
        return None
    if resource_id not in (None, stored.record.resource_id):
        raise OwnershipError("thread", thread_id)
    return stored


async def clone_thread(queries: Queries, db: Session, request: CloneThread) -> ClonedThread:
    """Copy a thread. The source is kept from being deleted meanwhile, and can be written to."""
    if request.to_resource_id is None:
        owner = queries.statement("keep_owner", {"id": request.source_id})
    else:
        owner = queries.statement("ensure_resource", {"resource": request.to_resource_id})
    source, _ = await _locked_thread(queries, db, request.source_id, owner, lock="keep_thread")
    original = request.check(None if source is None else source.record)
    if source is None:
        raise LostRaceError
    draft = request.thread(original, last_message_id=None, message_count=0)
    made = await _made_thread(queries, db, draft)
    values: dict[str, Value] = {
        **_queries.between(request.dates),
        "source": source.key,
        "key": made.key,
        "resource_key": made.resource_key,
        "seq": request.seq,
        "limit": request.limit,
        "ids": None if request.message_ids is None else list(request.message_ids),
    }
    chosen = "" if request.message_ids is None else "chosen"
    (copied,) = await db.go_on(queries.statement("copy_messages", values, row="m", chosen=chosen))
    ids = [(row[0], row[1]) for row in copied.rows]
    thread = request.thread(original, last_message_id=ids[-1][0] if ids else None, message_count=len(ids))
    last = [
        _replacing(queries, thread, made.key, made.resource_key),
        queries.statement("count_messages_of_thread", {"key": made.key, "count": len(ids)}),
    ]
    if request.return_messages:
        last.append(queries.statement("messages_of_thread", {"key": made.key}))
    done = await db.commit(*last)
    messages = [_codec.message(row) for row in done[-1].rows] if request.return_messages else None
    return ClonedThread(thread, ids, messages)


class _Keys(NamedTuple):
    key: int
    resource_key: int


async def _made_thread(queries: Queries, db: Session, record: ThreadRecord) -> _Keys:
    """Insert a thread inside a transaction.

    Raises:
        AlreadyExistsError: Its id is taken.
    """
    there, made = await db.go_on(
        queries.statement("thread_by_id", {"id": record.id}),
        queries.statement("create_thread", _thread_values(record)),
    )
    if there.rows:
        raise AlreadyExistsError("thread", record.id)
    if not made.rows:
        raise LostRaceError
    return _Keys(*made.rows[0])


# --- resources ------------------------------------------------------------------------------------


async def put_resource(queries: Queries, db: Session, record: ResourceRecord) -> ResourceRecord:
    """Store a resource as it is."""
    await db.write(queries.statement("put_resource", _codec.resource_values(record)))
    return record


async def update_resource(queries: Queries, db: Session, request: UpdateResource) -> ResourceRecord:
    """Change a resource under its lock.

    A merge is core's, not jsonb's, which makes 1e16 an integer, drops the sign of -0.0 and sorts keys.
    """
    lock = queries.statement("lock_resource", {"id": request.id})
    (rows,) = await db.begin(lock)
    if not rows:  # something to lock, so that of two first writers one waits
        _, locked = await db.go_on(queries.statement("seed_resource", {"id": request.id}), lock)
        rows = locked.rows
    if not rows:
        raise LostRaceError
    stored = None if rows[0][-1] is None else _codec.resource(rows[0])
    changed = request.apply(stored)
    await db.commit(queries.statement("put_resource", _codec.resource_values(changed)))
    return changed


async def delete_resource(queries: Queries, db: Session, resource_id: str) -> DeletedResource:
    """Delete a resource with all it owns. Its lock keeps new threads from being made under it."""
    (rows,) = await db.begin(queries.statement("lock_resource_to_delete", {"id": resource_id}))
    if not rows:
        await db.abandon()
        return DeletedResource(threads=0, messages=0, resources=0)
    key, known = rows[0]
    names = (
        "lock_threads_of_resource",
        "delete_positions_of_resource",
        "delete_messages_of_resource",
        "delete_thread_positions_of_resource",
        "delete_threads_of_resource",
        "delete_resource",
    )
    done = await db.commit(*[queries.statement(name, {"key": key}) for name in names])
    return DeletedResource(threads=done[4].affected, messages=done[2].affected, resources=int(known))


# --- archive memories -----------------------------------------------------------------------------


async def save_memories(queries: Queries, db: Session, request: SaveMemories) -> None:
    """Insert or replace archive memories."""
    values: dict[str, Value] = {
        "memories": _codec.given_memories(request.memories),
        "ids": [memory.id for memory in request.memories],
    }
    if request.replace:
        await db.write(queries.statement("replace_memories", values))
        return
    done = await db.write(queries.statement("insert_memories", values))
    if done.affected == len(request.memories):
        return
    db.writing = False
    taken = await db.read(queries.statement("taken_memory", values))
    if not taken:
        raise LostRaceError
    raise AlreadyExistsError("memory", str(taken[0][0]))


async def pin_memory(queries: Queries, db: Session, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
    """Pin or unpin a memory."""
    done = await db.write(queries.statement("pin_memory", {"id": memory_id, "pinned": pinned}))
    return _codec.memory(done.rows[0]) if done.rows else None


async def delete_memories(
    queries: Queries, db: Session, actor: tuple[str, str], ids: Sequence[int] | None
) -> int:
    """Delete an actor's memories."""
    values: dict[str, Value] = {
        "type": actor[0],
        "actor": actor[1],
        "ids": None if ids is None else list(ids),
    }
    name = "delete_actor_memories" if ids is None else "delete_memories"
    return (await db.write(queries.statement(name, values))).affected
