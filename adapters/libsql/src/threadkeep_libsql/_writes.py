"""What the writing calls do, on a connection inside one write transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from threadkeep.errors import AlreadyExistsError, OwnershipError
from threadkeep.models import DeletedResource
from threadkeep.records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord
from threadkeep.requests import (
    ClonedThread,
    CloneThread,
    DeleteMessages,
    Placement,
    SaveMemories,
    SaveMessages,
    TransferThread,
    UpdateMessages,
    UpdateResource,
    UpdateThread,
    WriteThread,
)

from . import _codec, _queries, _reads, _schema
from ._driver import Connection, Value
from ._queries import sql

__all__ = [
    "clear_thread",
    "clone_thread",
    "delete_memories",
    "delete_messages",
    "delete_resource",
    "delete_thread",
    "pin_memory",
    "put_resource",
    "save_memories",
    "save_messages",
    "transfer_thread",
    "update_messages",
    "update_resource",
    "update_thread",
    "write_thread",
]

_COPY_BATCH = 10_000


class _Keys(NamedTuple):
    """A stored thread's own key and its resource's."""

    thread: int
    resource: int


# --- threads --------------------------------------------------------------------------------------


def _load_thread(db: Connection, thread_id: str) -> tuple[ThreadRecord | None, _Keys]:
    rows = db.query(sql("thread_by_id"), (thread_id,))
    if not rows:
        return None, _Keys(0, 0)
    return _codec.thread(rows[0][:-2]), _Keys(*rows[0][-2:])


def _resource_key(db: Connection, resource_id: str) -> int:
    """The key of a resource, made where it has none."""
    rows = db.query(sql("resource_key"), (resource_id,))
    if not rows:
        db.run(sql("ensure_resource"), (resource_id,))
        rows = db.query(sql("resource_key"), (resource_id,))
    return rows[0][0]


def _insert_thread(db: Connection, record: ThreadRecord) -> _Keys:
    resource = _resource_key(db, record.resource_id)
    db.run(
        sql("insert_thread"),
        (
            record.id,
            resource,
            record.title,
            record.metadata,
            _codec.token_object(record.tokens),
            record.working_memory,
            record.message_count,
            record.created_at,
            record.updated_at,
        ),
    )
    thread = db.query(sql("thread_key"), (record.id,))[0][0]
    db.run(sql("index_thread"), (thread, thread))
    return _Keys(thread, resource)


def _replace_thread(db: Connection, record: ThreadRecord, keys: _Keys, resource: int) -> None:
    db.run(sql("unindex_thread"), (keys.thread,))
    db.run(
        sql("update_thread"),
        (
            resource,
            record.title,
            record.metadata,
            _codec.token_object(record.tokens),
            record.working_memory,
            record.created_at,
            record.updated_at,
            keys.thread,
        ),
    )
    db.run(sql("index_thread"), (keys.thread, keys.thread))


def write_thread(db: Connection, request: WriteThread) -> tuple[ThreadRecord, bool]:
    """Create or replace a thread."""
    stored, keys = _load_thread(db, request.thread.id)
    record = request.resolve(stored)
    if stored is None:
        record = record or request.thread
        _insert_thread(db, record)
        return record, True
    if record is None:
        return stored, False
    _replace_thread(db, record, keys, keys.resource)
    return record, True


def update_thread(db: Connection, request: UpdateThread) -> ThreadRecord:
    """Change a thread."""
    stored, keys = _load_thread(db, request.id)
    changed = request.apply(stored)
    _replace_thread(db, changed, keys, keys.resource)
    return changed


def transfer_thread(db: Connection, request: TransferThread) -> ThreadRecord:
    """Give a thread to another resource: only its positions under the resource change."""
    stored, keys = _load_thread(db, request.id)
    changed = request.apply(stored)
    resource = _resource_key(db, request.to_resource_id)
    if resource != keys.resource:
        db.run(sql("unindex_thread_from_resource"), (keys.resource, keys.thread))
        db.run(sql("index_thread_for_resource"), (resource, keys.thread))
    _replace_thread(db, changed, keys, resource)
    return changed


def _owned(db: Connection, thread_id: str, resource_id: str | None) -> _Keys | None:
    """The keys of a thread, or None where there is none; raises where it is another resource's."""
    stored, keys = _load_thread(db, thread_id)
    if stored is None:
        return None
    if resource_id not in (None, stored.resource_id):
        raise OwnershipError("thread", thread_id)
    return keys


def _delete_messages_of(db: Connection, keys: _Keys) -> int:
    db.run(sql("unindex_thread_from_resource"), (keys.resource, keys.thread))
    count = db.run(sql("delete_messages_in_scope"), (keys.thread,))
    db.run(sql("delete_positions_in_scope"), (keys.thread,))
    return count


def delete_thread(db: Connection, thread_id: str, resource_id: str | None) -> bool:
    """Delete a thread with its messages."""
    keys = _owned(db, thread_id, resource_id)
    if keys is None:
        return False
    _delete_messages_of(db, keys)
    db.run(sql("unindex_thread"), (keys.thread,))
    db.run(sql("delete_thread"), (keys.thread,))
    return True


def clear_thread(db: Connection, thread_id: str, resource_id: str | None, now: int) -> int:
    """Delete a thread's messages."""
    keys = _owned(db, thread_id, resource_id)
    count = 0 if keys is None else _delete_messages_of(db, keys)
    if keys is not None and count:
        db.run(sql("touch_thread"), (-count, now, keys.thread))
    return count


def clone_thread(db: Connection, request: CloneThread) -> ClonedThread:
    """Copy a thread: bodies go from table to table."""
    stored, source = _load_thread(db, request.source_id)
    record = request.check(stored)
    if _load_thread(db, request.thread_id)[0] is not None:
        raise AlreadyExistsError("thread", request.thread_id)
    db.run(sql("create_copy_table"))
    db.run(sql("clear_copy_table"))
    chosen = () if request.message_ids is None else (_codec.json_array(request.message_ids),)
    db.run(
        sql("choose_copies", chosen=bool(chosen)),
        (
            source.thread,
            *_queries.bound_values(request.dates),
            *chosen,
            -1 if request.limit is None else request.limit,
        ),
    )
    ids = [(old, new) for old, new in db.query(sql("copied_ids"))]
    thread = request.thread(record, last_message_id=ids[-1][0] if ids else None, message_count=len(ids))
    keys = _insert_thread(db, thread)
    first: int = db.query(sql("next_message_key"))[0][0]
    last = first + len(ids) - 1
    db.run(sql("copy_messages"), (first, keys.thread, request.seq))
    for start in range(first, last + 1, _COPY_BATCH):
        span = (start, min(start + _COPY_BATCH - 1, last))
        db.run(sql("index_messages"), (*span, *span))
    db.run(sql("clear_copy_table"))
    copies = None
    if request.return_messages:
        copies = [_codec.message(row) for row in db.query(sql("copied_messages"), (first, last))]
    return ClonedThread(thread, ids, copies)


# --- messages -------------------------------------------------------------------------------------


class _Stored(NamedTuple):
    """Where a stored message is, its key and its thread's."""

    placement: Placement
    key: int
    thread_key: int


def _placements(db: Connection, ids: Sequence[str]) -> dict[str, _Stored]:
    rows = db.query(sql("placements"), (_codec.json_array(ids),))
    return {
        identifier: _Stored(Placement(thread_id, resource_id, created_at, seq), key, thread_key)
        for identifier, thread_id, resource_id, created_at, seq, key, thread_key in rows
    }


def _threads(db: Connection, ids: Sequence[str]) -> tuple[dict[str, str], dict[str, _Keys]]:
    """The owners and the keys of threads."""
    rows = db.query(sql("owners"), (_codec.json_array(ids),)) if ids else []
    return {row[0]: row[1] for row in rows}, {row[0]: _Keys(row[2], row[4]) for row in rows}


def save_messages(db: Connection, request: SaveMessages) -> list[MessageRecord]:
    """Insert or replace messages."""
    owners, keys = _threads(db, request.thread_ids())
    stored = _placements(db, [message.id for message in request.messages])
    records = request.resolve(owners, {name: there.placement for name, there in stored.items()})
    new = [record for record in records if record.id not in stored] if stored else records
    if new:
        _insert_messages(db, new, keys)
    for record in records:
        if record.id in stored:
            _replace_message(db, record, stored[record.id].key, keys[record.thread_id].thread)
    counts = Counter([record.thread_id for record in new])
    _touch(db, counts, keys, request.now)
    return records


def _insert_messages(db: Connection, new: list[MessageRecord], keys: dict[str, _Keys]) -> None:
    first: int = db.query(sql("next_message_key"))[0][0]
    rows: list[tuple[Value, ...]] = []
    positions: list[tuple[int, str, int, int, str, int]] = []
    indexed = _schema.indexed_keys(db)
    for key, record in enumerate(new, first):
        thread, resource = keys[record.thread_id]
        place = (record.created_at, record.seq, record.id, key)
        for token in ("", *_codec.indexed_tokens(record.tokens, indexed)):
            positions += ((thread, token, *place), (-resource, token, *place))
        tokens = _codec.token_object(record.tokens)
        texts = (record.role, record.type, record.content, record.metadata, tokens)
        rows.append((key, record.id, thread, *texts, record.created_at, record.seq))
    db.run_many(sql("insert_message"), rows)
    positions.sort()  # neighbours in the index are written together: a fifth faster for a large batch
    db.run_many(sql("insert_position"), positions)


def _touch(db: Connection, counts: Counter[str], keys: dict[str, _Keys], now: int) -> None:
    """Set ``updated_at`` of threads and add to their counters."""
    db.run_many(sql("touch_thread"), [(counts[name], now, own.thread) for name, own in keys.items()])


def _replace_message(db: Connection, record: MessageRecord, key: int, thread_key: int) -> None:
    db.run(sql("unindex_message"), (key,))
    db.run(
        sql("update_message"),
        (
            thread_key,
            record.role,
            record.type,
            record.content,
            record.metadata,
            _codec.token_object(record.tokens),
            key,
        ),
    )
    db.run(sql("index_messages"), (key, key, key, key))


def update_messages(db: Connection, request: UpdateMessages) -> list[MessageRecord]:
    """Change messages, moving them where asked."""
    ids = request.ids()
    rows = db.query(sql("messages_by_id"), (_codec.json_array(ids),))
    stored = {row[1]: _codec.message(row[1:]) for row in rows}
    keys = {row[1]: row[0] for row in rows}
    owners, _ = _threads(db, request.targets())
    changed = request.resolve(stored, owners)
    moves: Counter[str] = Counter()
    for record in changed:
        moves[stored[record.id].thread_id] -= 1
        moves[record.thread_id] += 1
    _, threads = _threads(db, sorted(moves))
    for record in changed:
        _replace_message(db, record, keys[record.id], threads[record.thread_id].thread)
    _touch(db, moves, threads, request.now)
    return changed


def delete_messages(db: Connection, request: DeleteMessages) -> int:
    """Delete messages."""
    stored = _placements(db, request.ids)
    request.check({name: there.placement for name, there in stored.items()})
    db.run_many(sql("unindex_message"), [(there.key,) for there in stored.values()])
    db.run_many(sql("delete_message"), [(there.key,) for there in stored.values()])
    counts = Counter([there.thread_key for there in stored.values()])
    db.run_many(sql("touch_thread"), [(-count, request.now, key) for key, count in counts.items()])
    return len(stored)


# --- resources ------------------------------------------------------------------------------------


def put_resource(db: Connection, record: ResourceRecord) -> ResourceRecord:
    """Store a resource as it is."""
    db.run(sql("put_resource"), _codec.resource_row(record))
    return record


def update_resource(db: Connection, request: UpdateResource) -> ResourceRecord:
    """Change a resource; core's merge function runs here, under the write lock."""
    return put_resource(db, request.apply(_reads.get_resource(db, request.id)))


def delete_resource(db: Connection, resource_id: str) -> DeletedResource:
    """Delete a resource with all it owns."""
    rows = db.query(sql("resource_key"), (resource_id,))
    if not rows:
        return DeletedResource(threads=0, messages=0, resources=0)
    key = rows[0][0]
    known = _reads.get_resource(db, resource_id) is not None
    messages = db.run(sql("delete_messages_in_scope"), (-key,))
    db.run(sql("delete_positions_in_scope"), (-key,))
    db.run(sql("delete_resource_thread_positions"), (key,))
    threads = [row[0] for row in db.query(sql("resource_threads"), (key,))]
    db.run_many(sql("unindex_thread"), [(thread,) for thread in threads])
    db.run_many(sql("delete_thread"), [(thread,) for thread in threads])
    db.run(sql("delete_resource"), (key,))
    return DeletedResource(threads=len(threads), messages=messages, resources=int(known))


# --- archive memories -----------------------------------------------------------------------------


def save_memories(db: Connection, request: SaveMemories) -> None:
    """Insert or replace archive memories."""
    if not request.replace:
        taken = db.query(
            sql("taken_memory"), (_codec.json_array([memory.id for memory in request.memories]),)
        )
        if taken:
            raise AlreadyExistsError("memory", str(taken[0][0]))
    statement = sql("replace_memory" if request.replace else "insert_memory")
    db.run_many(statement, [_codec.memory_row(memory) for memory in request.memories])


def pin_memory(db: Connection, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
    """Pin or unpin a memory."""
    rows = db.query(sql("memory_by_id"), (memory_id,))
    if not rows:
        return None
    db.run(sql("pin_memory"), (int(pinned), memory_id))
    return replace(_codec.memory(rows[0]), pinned=pinned)


def delete_memories(db: Connection, actor: tuple[str, str], ids: Sequence[int] | None) -> int:
    """Delete an actor's memories."""
    if ids is None:
        return db.run(sql("delete_actor_memories"), actor)
    return db.run(sql("delete_memories"), (*actor, _codec.json_array(ids)))
