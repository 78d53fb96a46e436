"""The in-memory adapter: short, obviously right, the model that every other adapter is held against.

It compares plain values and never looks at tokens, so that an error in the token code shows up as a
difference. ``memory:`` is private to its store; stores on ``memory:NAME`` in one process share what they hold
until the last is closed. Every read looks at every record: it is no database.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from .adapter import StorageAdapter
from .capabilities import Capabilities, Capability, Pushdown, Support
from .errors import AlreadyExistsError, InvalidArgumentError, OwnershipError
from .filters import Condition, Operator
from .hookspecs import CONTRACT, AdapterSpec
from .models import DeletedResource, Explanation, Include, new_id
from .records import MemoryRecord, MessageRecord, Position, ResourceRecord, ThreadRecord
from .requests import (
    Bounds,
    ClonedThread,
    CloneThread,
    DeleteMessages,
    MemoryQuery,
    MemorySlice,
    MessageQuery,
    MessageSlice,
    Placement,
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
    rising,
)
from .urls import StoreUrl

__all__ = ["SPEC", "ReferenceAdapter"]

Row = TypeVar("Row")


class _Tables:
    """What a store holds. The lock makes every call one step, whichever event loop it comes from."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads: dict[str, ThreadRecord] = {}
        self.messages: dict[str, MessageRecord] = {}
        self.resources: dict[str, ResourceRecord] = {}
        self.memories: dict[int, MemoryRecord] = {}


_shared: WeakValueDictionary[str, _Tables] = WeakValueDictionary()
_shared_lock = threading.Lock()


def _forget() -> None:
    """Share nothing with the parent of a forked child, whose threads may have held these locks."""
    global _shared_lock  # noqa: PLW0603  (one per process)
    _shared.clear()
    _shared_lock = threading.Lock()


if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=_forget)


class ReferenceAdapter(StorageAdapter):
    """A few dicts behind a lock."""

    name = "memory"

    def __init__(self, tables: _Tables) -> None:
        self.capabilities = Capabilities(SPEC.support)
        self._tables = tables

    @contextmanager
    def _locked(self) -> Generator[_Tables]:
        with self._tables.lock:
            yield self._tables

    async def migrate(self) -> None:
        pass

    async def close(self) -> None:
        self._tables = _Tables()  # lets go of a shared one

    # --- threads ----------------------------------------------------------------------------------

    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        with self._locked() as tables:
            record = request.resolve(tables.threads.get(request.thread.id))
            if record is None:
                return tables.threads[request.thread.id], False
            tables.threads[record.id] = record
            return record, True

    async def get_thread(self, thread_id: str) -> ThreadRecord | None:
        with self._locked() as tables:
            return tables.threads.get(thread_id)

    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        def place(row: ThreadRecord) -> Position:
            return Position(row.created_at if query.order_by == "created_at" else row.updated_at, 0, row.id)

        with self._locked() as tables:
            rows = [
                row
                for row in tables.threads.values()
                if query.resource_id in (None, row.resource_id) and _matches(row.metadata, query.where)
            ]
        rows.sort(key=place, reverse=query.descending)
        total = len(rows) if query.count else None
        rows = [row for row in rows if _within(place(row), query.bounds)]
        return ThreadSlice(_cut(rows, query.offset, query.limit), total)

    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        with self._locked() as tables:
            changed = request.apply(tables.threads.get(request.id))
            tables.threads[request.id] = changed
            return changed

    async def delete_thread(self, thread_id: str, resource_id: str | None) -> bool:
        with self._locked() as tables:
            if not _owned(tables, thread_id, resource_id):
                return False
            _remove(tables, [row.id for row in _messages_of(tables, thread_id)])
            del tables.threads[thread_id]
            return True

    async def clear_thread(self, thread_id: str, resource_id: str | None, now: int) -> int:
        with self._locked() as tables:
            if not _owned(tables, thread_id, resource_id):
                return 0
            ids = [row.id for row in _messages_of(tables, thread_id)]
            _remove(tables, ids)
            if ids:
                _touch(tables, [thread_id], now)
            return len(ids)

    async def transfer_thread(self, request: TransferThread) -> ThreadRecord:
        with self._locked() as tables:
            changed = request.apply(tables.threads.get(request.id))
            tables.threads[request.id] = changed
            for row in _messages_of(tables, request.id):
                tables.messages[row.id] = replace(row, resource_id=request.to_resource_id)
            return changed

    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        with self._locked() as tables:
            source = request.check(tables.threads.get(request.source_id))
            if request.thread_id in tables.threads:
                raise AlreadyExistsError("thread", request.thread_id)
            rows = [
                row
                for row in _messages_of(tables, request.source_id)
                if _within(row.position, request.dates)
                and (request.message_ids is None or row.id in request.message_ids)
            ]
            rows.sort(key=lambda row: row.position)
            if request.limit is not None:
                rows = rows[len(rows) - min(request.limit, len(rows)) :]
            last = rows[-1].id if rows else None
            thread = request.thread(source, last_message_id=last, message_count=len(rows))
            copies = [
                replace(
                    row,
                    id=new_id(),
                    thread_id=thread.id,
                    resource_id=thread.resource_id,
                    seq=request.seq + rank,
                )
                for rank, row in enumerate(rows)
            ]
            tables.threads[thread.id] = thread
            tables.messages.update({copy.id: copy for copy in copies})
        ids = [(row.id, copy.id) for row, copy in zip(rows, copies, strict=True)]
        return ClonedThread(thread, ids, copies if request.return_messages else None)

    # --- messages ---------------------------------------------------------------------------------

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        with self._locked() as tables:
            owners = _owners(tables, request.thread_ids())
            there = {
                row.id: _placement(tables.messages[row.id])
                for row in request.messages
                if row.id in tables.messages
            }
            stored = request.resolve(owners, there)
            tables.messages.update({row.id: row for row in stored})
            _touch(tables, request.thread_ids(), request.now)
            return stored

    async def get_messages(self, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
        with self._locked() as tables:
            rows = [tables.messages[name] for name in ids if name in tables.messages]
        rows = [row for row in rows if resource_id in (None, row.resource_id)]
        return sorted(rows, key=lambda row: row.position)

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        with self._locked() as tables:
            rows = [
                row
                for row in tables.messages.values()
                if (query.threads is None or row.thread_id in query.threads)
                and query.resource_id in (None, row.resource_id)
                and _within(row.position, query.dates)
                and _matches(row.metadata, query.where)
            ]
            windows = [row for include in query.includes for row in _window(tables, include, query)]
        rows.sort(key=lambda row: row.position, reverse=query.descending)
        total = len(rows) if query.count else None
        rows = [row for row in rows if _within(row.position, query.bounds)]
        return MessageSlice(_cut(rows, query.offset, query.limit), total, windows)

    async def update_messages(self, request: UpdateMessages) -> list[MessageRecord]:
        with self._locked() as tables:
            before = {name: tables.messages[name] for name in request.ids() if name in tables.messages}
            changed = request.resolve(before, _owners(tables, request.targets()))
            tables.messages.update({row.id: row for row in changed})
            _touch(
                tables,
                [row.thread_id for row in changed] + [before[row.id].thread_id for row in changed],
                request.now,
            )
            return changed

    async def delete_messages(self, request: DeleteMessages) -> int:
        with self._locked() as tables:
            rows = {name: tables.messages[name] for name in request.ids if name in tables.messages}
            request.check({name: _placement(row) for name, row in rows.items()})
            _remove(tables, rows)
            _touch(tables, [row.thread_id for row in rows.values()], request.now)
            return len(rows)

    # --- resources --------------------------------------------------------------------------------

    async def put_resource(self, resource: ResourceRecord) -> ResourceRecord:
        with self._locked() as tables:
            tables.resources[resource.id] = resource
            return resource

    async def get_resource(self, resource_id: str) -> ResourceRecord | None:
        with self._locked() as tables:
            return tables.resources.get(resource_id)

    async def list_resources(self, query: ResourceQuery) -> ResourceSlice:
        with self._locked() as tables:
            rows = sorted(tables.resources.values(), key=lambda row: row.id)
        total = len(rows) if query.count else None
        return ResourceSlice(
            _cut([row for row in rows if row.id > query.after], query.offset, query.limit), total
        )

    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        with self._locked() as tables:
            changed = request.apply(tables.resources.get(request.id))
            tables.resources[request.id] = changed
            return changed

    async def delete_resource(self, resource_id: str) -> DeletedResource:
        with self._locked() as tables:
            threads = [row.id for row in tables.threads.values() if row.resource_id == resource_id]
            messages = [row.id for row in tables.messages.values() if row.resource_id == resource_id]
            _remove(tables, messages)
            for name in threads:
                del tables.threads[name]
            record = tables.resources.pop(resource_id, None)
        return DeletedResource(
            threads=len(threads), messages=len(messages), resources=0 if record is None else 1
        )

    # --- archive memories -------------------------------------------------------------------------

    async def save_memories(self, request: SaveMemories) -> None:
        with self._locked() as tables:
            taken = next((row.id for row in request.memories if row.id in tables.memories), None)
            if taken is not None and not request.replace:
                raise AlreadyExistsError("memory", str(taken))
            tables.memories.update({row.id: row for row in request.memories})

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        with self._locked() as tables:
            rows = [
                row
                for row in tables.memories.values()
                if (query.actors is None or (row.actor_type, row.actor_id) in query.actors)
                and not (query.recall and row.pinned)
                and query.folded in row.content.casefold()
            ]
        rows.sort(key=lambda row: (-row.created_at, row.id))
        total = len(rows) if query.count else None
        if query.after is not None:
            at, after_id = query.after
            rows = [row for row in rows if (-row.created_at, row.id) > (-at, after_id)]
        return MemorySlice(_cut(rows, query.offset, query.limit), total)

    async def pin_memory(self, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
        with self._locked() as tables:
            if memory_id not in tables.memories:
                return None
            tables.memories[memory_id] = replace(tables.memories[memory_id], pinned=pinned)
            return tables.memories[memory_id]

    async def delete_memories(self, actor: tuple[str, str], ids: Sequence[int] | None) -> int:
        with self._locked() as tables:
            gone = [
                row.id
                for row in tables.memories.values()
                if (row.actor_type, row.actor_id) == actor and (ids is None or row.id in ids)
            ]
            for name in gone:
                del tables.memories[name]
            return len(gone)

    # --- explain ----------------------------------------------------------------------------------

    async def explain_messages(self, query: MessageQuery) -> Explanation:
        with self._locked() as tables:
            return _explanation("message", len(tables.messages), filtered=bool(query.where))

    async def explain_threads(self, query: ThreadQuery) -> Explanation:
        with self._locked() as tables:
            return _explanation("thread", len(tables.threads), filtered=bool(query.where))


def _explanation(kind: str, rows: int, *, filtered: bool) -> Explanation:
    emulated = Support.EMULATED.value
    return Explanation(
        adapter="memory",
        filter=emulated if filtered else None,
        order=emulated,
        limit=emulated,
        indexes=[],
        rows_examined=rows,
        plan=[f"look at every {kind} in memory"],
    )


def _cut(rows: list[Row], offset: int, limit: int | None) -> list[Row]:
    return rows[offset:] if limit is None else rows[offset : offset + limit]


def _within(place: Position, bounds: Bounds) -> bool:
    return (bounds.after is None or place > bounds.after) and (bounds.before is None or place < bounds.before)


def _owned(tables: _Tables, thread_id: str, resource_id: str | None) -> bool:
    """Whether the thread exists; raises where it is another resource's."""
    thread = tables.threads.get(thread_id)
    if thread is not None and resource_id not in (None, thread.resource_id):
        raise OwnershipError("thread", thread_id)
    return thread is not None


def _owners(tables: _Tables, thread_ids: Iterable[str]) -> dict[str, str]:
    return {name: tables.threads[name].resource_id for name in thread_ids if name in tables.threads}


def _placement(row: MessageRecord) -> Placement:
    return Placement(row.thread_id, row.resource_id, row.created_at, row.seq)


def _messages_of(tables: _Tables, thread_id: str) -> list[MessageRecord]:
    return [row for row in tables.messages.values() if row.thread_id == thread_id]


def _remove(tables: _Tables, ids: Iterable[str]) -> None:
    for name in ids:
        del tables.messages[name]


def _touch(tables: _Tables, thread_ids: Iterable[str], now: int) -> None:
    """Set ``updated_at`` of threads and count their messages again."""
    counts = Counter(row.thread_id for row in tables.messages.values())
    for name in set(thread_ids):
        thread = tables.threads[name]
        tables.threads[name] = replace(
            thread, message_count=counts[name], updated_at=rising(now, thread.updated_at)
        )


def _window(tables: _Tables, include: Include, query: MessageQuery) -> list[MessageRecord]:
    """An include's target with its neighbours, or nothing where it is unknown or out of scope."""
    target = tables.messages.get(include.id)
    if target is None or include.thread_id not in (None, target.thread_id):
        return []
    if query.resource_id is None:
        allowed = {tables.threads[name].resource_id for name in query.threads or () if name in tables.threads}
    else:
        allowed = {query.resource_id}
    if target.resource_id not in allowed:
        return []
    rows = sorted(_messages_of(tables, target.thread_id), key=lambda row: row.position)
    index = rows.index(target)
    return rows[max(index - include.before, 0) : index + include.after + 1]


def _matches(metadata: str, where: tuple[Condition, ...]) -> bool:
    if not where:
        return True
    found: dict[str, Any] = json.loads(metadata)
    return all(_holds(condition, found) for condition in where)


def _holds(condition: Condition, metadata: dict[str, Any]) -> bool:
    operator, values = condition.operator, condition.values
    if condition.key not in metadata:
        return operator is Operator.MISSING
    stored: Any = metadata[condition.key]
    if operator is Operator.MISSING:
        return False
    if operator is Operator.EXISTS:
        return True
    if operator in (Operator.EQUAL, Operator.ONE_OF):
        return any(_same(stored, value) for value in values)
    if operator is Operator.NOT_EQUAL:
        return not _same(stored, values[0])
    return _kind(stored) == _kind(values[0]) and _COMPARE[operator](stored, values[0])


def _kind(value: object) -> str:
    """The JSON type; a bool is no number although Python says so."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return type(value).__name__


def _same(stored: object, value: object) -> bool:
    scalar = not isinstance(stored, (list, dict))
    return scalar and _kind(stored) == _kind(value) and stored == value


_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.GT: lambda stored, value: stored > value,
    Operator.GTE: lambda stored, value: stored >= value,
    Operator.LT: lambda stored, value: stored < value,
    Operator.LTE: lambda stored, value: stored <= value,
}


async def connect(url: str, *, migrate: bool) -> StorageAdapter:
    """Open an in-memory store; there is nothing to migrate."""
    del migrate
    parts = StoreUrl.parse(url, known=frozenset())
    if parts.authority:
        raise InvalidArgumentError(
            "url", "memory: or memory:NAME, without slashes", "a memory URL with a host"
        )
    name = parts.path
    if not name:
        return ReferenceAdapter(_Tables())
    with _shared_lock:
        tables = _shared.get(name)
        if tables is None:
            tables = _shared[name] = _Tables()
        return ReferenceAdapter(tables)


SPEC = AdapterSpec(
    name="memory",
    schemes=("memory",),
    connect=connect,
    contract=CONTRACT,
    support={
        Capability.METADATA_PUSHDOWN: Pushdown(Support.EMULATED, Support.EMULATED, Support.EMULATED),
        Capability.FILTER_OPERATORS: Support.EMULATED,
        Capability.ATOMIC_BATCH: Support.NATIVE,
        Capability.CONDITIONAL_WRITES: Support.NATIVE,
        Capability.ATOMIC_MERGE: Support.NATIVE,
        Capability.TEXT_SEARCH: Support.EMULATED,
        Capability.EXPLAIN: Support.EMULATED,
    },
    limits={"durability": "none: everything is gone when the process ends", "reads": "look at every record"},
)
