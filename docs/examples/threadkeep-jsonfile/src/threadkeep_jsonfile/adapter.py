"""The adapter: each call is one job on one thread, with the folder locked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from threadkeep import (
    AlreadyExistsError,
    Capabilities,
    DeletedResource,
    InvalidArgumentError,
    OwnershipError,
    PartialWriteError,
    StorageAdapter,
    UnavailableError,
)
from threadkeep.models import new_id
from threadkeep.records import MemoryRecord, MessageRecord, Position, ResourceRecord, ThreadRecord
from threadkeep.requests import (
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
from threadkeep.urls import StoreUrl

from .folder import Conversation, Folder
from .matching import cut, matches, window, within
from .plugin import SPEC

Result = TypeVar("Result")


class JsonFileAdapter(StorageAdapter):
    """One folder."""

    name = "jsonfile"

    def __init__(self, path: str) -> None:
        self.capabilities = Capabilities(SPEC.support)
        self._folder = Folder(Path(path).absolute())
        self._thread = ThreadPoolExecutor(1, "threadkeep-jsonfile")  # a disk must not block the event loop

    @classmethod
    async def connect(cls, url: str, *, migrate: bool) -> JsonFileAdapter:
        """Open the folder of a URL such as ``jsonfile:///home/me/memory``."""
        parts = StoreUrl.parse(url, known=frozenset())
        if parts.authority or not parts.path:
            raise InvalidArgumentError("url", "jsonfile:///FOLDER or jsonfile:FOLDER", "another jsonfile URL")
        adapter = cls(parts.path)
        folder = adapter._folder
        try:
            await adapter._run(folder.migrate if migrate else folder.require_current)
        except BaseException:
            await adapter.close()
            raise
        return adapter

    async def _run(self, job: Callable[[], Result]) -> Result:
        """Run a job on the thread. One that has begun runs to its end, even if its caller is cancelled."""

        def run() -> Result:
            try:
                return job()
            except OSError as exc:
                outcome = "unknown" if self._folder.changed else "not_applied"
                raise UnavailableError(f"{self._folder.path}: {exc.strerror}", outcome) from exc

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    async def _call(self, job: Callable[[Folder], Result]) -> Result:
        """Run a job on the folder while nobody else does, in this process or another."""

        def run() -> Result:
            with self._folder.locked():
                return job(self._folder)

        return await self._run(run)

    async def migrate(self) -> None:
        await self._run(self._folder.migrate)

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)

    # --- threads ---

    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        def write(folder: Folder) -> tuple[ThreadRecord, bool]:
            there = folder.thread(request.thread.id)
            record = request.resolve(there.thread if there else None)
            if there and record is None:
                return there.thread, False
            return folder.put_thread(record or request.thread, there.messages if there else {}), True

        return await self._call(write)

    async def get_thread(self, thread_id: str) -> ThreadRecord | None:
        def read(folder: Folder) -> ThreadRecord | None:
            there = folder.thread(thread_id)
            return there.thread if there else None

        return await self._call(read)

    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        def place(row: ThreadRecord) -> Position:
            return Position(row.created_at if query.order_by == "created_at" else row.updated_at, 0, row.id)

        def read(folder: Folder) -> ThreadSlice:
            rows = [
                one.thread
                for one in folder.threads()
                if query.resource_id in (None, one.thread.resource_id)
                and matches(one.thread.tokens, query.where)
            ]
            rows.sort(key=place, reverse=query.descending)
            page = [row for row in rows if within(place(row), query.bounds)]
            return ThreadSlice(cut(page, query.offset, query.limit), len(rows) if query.count else None)

        return await self._call(read)

    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        def write(folder: Folder) -> ThreadRecord:
            there = folder.thread(request.id)
            changed = request.apply(there.thread if there else None)
            return folder.put_thread(changed, there.messages if there else {})

        return await self._call(write)

    async def delete_thread(self, thread_id: str, resource_id: str | None) -> bool:
        def write(folder: Folder) -> bool:
            there = _owned(folder, thread_id, resource_id)
            if there:
                folder.delete_thread(thread_id)
            return there is not None

        return await self._call(write)

    async def clear_thread(self, thread_id: str, resource_id: str | None, now: int) -> int:
        def write(folder: Folder) -> int:
            there = _owned(folder, thread_id, resource_id)
            if there is None or not there.messages:
                return 0
            folder.put_thread(_touched(there.thread, now), {})
            return len(there.messages)

        return await self._call(write)

    async def transfer_thread(self, request: TransferThread) -> ThreadRecord:
        def write(folder: Folder) -> ThreadRecord:
            there = folder.thread(request.id)
            changed = request.apply(there.thread if there else None)
            rows = there.messages.values() if there else ()
            moved = {row.id: replace(row, resource_id=request.to_resource_id) for row in rows}
            return folder.put_thread(changed, moved)

        return await self._call(write)

    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        def write(folder: Folder) -> ClonedThread:
            there = folder.thread(request.source_id)
            source = request.check(there.thread if there else None)
            if folder.thread(request.thread_id):
                raise AlreadyExistsError("thread", request.thread_id)
            rows = [
                row
                for row in (there.messages.values() if there else ())
                if within(row.position, request.dates)
                and (request.message_ids is None or row.id in request.message_ids)
            ]
            rows.sort(key=lambda row: row.position)
            if request.limit is not None:
                rows = rows[max(len(rows) - request.limit, 0) :]
            last = rows[-1].id if rows else None
            thread = request.thread(source, last_message_id=last, message_count=len(rows))
            owner = {"thread_id": thread.id, "resource_id": thread.resource_id}
            copies = [
                replace(row, id=new_id(), seq=request.seq + rank, **owner) for rank, row in enumerate(rows)
            ]
            folder.put_thread(thread, {copy.id: copy for copy in copies})
            ids = [(row.id, copy.id) for row, copy in zip(rows, copies, strict=True)]
            return ClonedThread(thread, ids, copies if request.return_messages else None)

        return await self._call(write)

    # --- messages ---

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        def write(folder: Folder) -> list[MessageRecord]:
            threads = {one.thread.id: one for one in folder.threads()}
            rows = _found(threads.values(), [message.id for message in request.messages])
            stored = request.resolve(_owners(threads), {row.id: _placement(row) for row in rows})
            for row in stored:
                threads[row.thread_id].messages[row.id] = row
            _put_each(folder, [threads[name] for name in request.thread_ids()], request.now, stored)
            return stored

        return await self._call(write)

    async def get_messages(self, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
        def read(folder: Folder) -> list[MessageRecord]:
            rows = [row for row in _found(folder.threads(), ids) if resource_id in (None, row.resource_id)]
            return sorted(rows, key=lambda row: row.position)

        return await self._call(read)

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        def read(folder: Folder) -> MessageSlice:
            threads = list(folder.threads())
            rows = [
                row
                for one in threads
                if query.threads is None or one.thread.id in query.threads
                if query.resource_id in (None, one.thread.resource_id)
                for row in one.messages.values()
                if within(row.position, query.dates) and matches(row.tokens, query.where)
            ]
            rows.sort(key=lambda row: row.position, reverse=query.descending)
            page = [row for row in rows if within(row.position, query.bounds)]
            return MessageSlice(
                cut(page, query.offset, query.limit),
                len(rows) if query.count else None,
                _windows(threads, query),
            )

        return await self._call(read)

    async def update_messages(self, request: UpdateMessages) -> list[MessageRecord]:
        def write(folder: Folder) -> list[MessageRecord]:
            threads = {one.thread.id: one for one in folder.threads()}
            before = {row.id: row for row in _found(threads.values(), request.ids())}
            changed = request.resolve(before, _owners(threads))
            sources = _take_out(threads.values(), [row.id for row in changed])
            for row in changed:
                threads[row.thread_id].messages[row.id] = row
            targets = {row.thread_id for row in changed}
            # Where messages go to, first: a crash in between leaves one twice, until the call is repeated.
            order = [*sorted(targets), *sorted(sources - targets)]
            _put_each(folder, [threads[name] for name in order], request.now, changed)
            return changed

        return await self._call(write)

    async def delete_messages(self, request: DeleteMessages) -> int:
        def write(folder: Folder) -> int:
            threads = {one.thread.id: one for one in folder.threads()}
            rows = _found(threads.values(), request.ids)
            request.check({row.id: _placement(row) for row in rows})
            touched = _take_out(threads.values(), request.ids)
            _put_each(folder, [threads[name] for name in sorted(touched)], request.now, rows)
            return len(rows)

        return await self._call(write)

    # --- resources ---

    async def put_resource(self, resource: ResourceRecord) -> ResourceRecord:
        def write(folder: Folder) -> ResourceRecord:
            folder.put_resource(resource)
            return resource

        return await self._call(write)

    async def get_resource(self, resource_id: str) -> ResourceRecord | None:
        return await self._call(lambda folder: folder.resource(resource_id))

    async def list_resources(self, query: ResourceQuery) -> ResourceSlice:
        def read(folder: Folder) -> ResourceSlice:
            rows = sorted(folder.resources(), key=lambda row: row.id)
            page = [row for row in rows if row.id > query.after]
            return ResourceSlice(cut(page, query.offset, query.limit), len(rows) if query.count else None)

        return await self._call(read)

    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        def write(folder: Folder) -> ResourceRecord:
            changed = request.apply(folder.resource(request.id))
            folder.put_resource(changed)
            return changed

        return await self._call(write)

    async def delete_resource(self, resource_id: str) -> DeletedResource:
        def write(folder: Folder) -> DeletedResource:
            owned = [one for one in folder.threads() if one.thread.resource_id == resource_id]
            for one in owned:
                folder.delete_thread(one.thread.id)
            resources = 1 if folder.resource(resource_id) else 0
            if resources:
                folder.delete_resource(resource_id)
            messages = sum(len(one.messages) for one in owned)
            return DeletedResource(threads=len(owned), messages=messages, resources=resources)

        return await self._call(write)

    # --- archive memories ---

    async def save_memories(self, request: SaveMemories) -> None:
        def write(folder: Folder) -> None:
            memories = folder.memories()
            for row in request.memories:
                if row.id in memories and not request.replace:
                    raise AlreadyExistsError("memory", str(row.id))
                memories[row.id] = row
            folder.put_memories(memories)

        await self._call(write)

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        def read(folder: Folder) -> MemorySlice:
            rows = [
                row
                for row in folder.memories().values()
                if (query.actors is None or (row.actor_type, row.actor_id) in query.actors)
                and not (query.recall and row.pinned)
                and query.folded in row.folded
            ]
            rows.sort(key=lambda row: (-row.created_at, row.id))
            total = len(rows) if query.count else None
            if query.after:
                at, identifier = query.after
                rows = [row for row in rows if (-row.created_at, row.id) > (-at, identifier)]
            return MemorySlice(cut(rows, query.offset, query.limit), total)

        return await self._call(read)

    async def pin_memory(self, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
        def write(folder: Folder) -> MemoryRecord | None:
            memories = folder.memories()
            if memory_id not in memories:
                return None
            memories[memory_id] = replace(memories[memory_id], pinned=pinned)
            folder.put_memories(memories)
            return memories[memory_id]

        return await self._call(write)

    async def delete_memories(self, actor: tuple[str, str], ids: Sequence[int] | None) -> int:
        def write(folder: Folder) -> int:
            memories = folder.memories()
            kept = {
                row.id: row
                for row in memories.values()
                if (row.actor_type, row.actor_id) != actor or (ids is not None and row.id not in ids)
            }
            if len(kept) < len(memories):
                folder.put_memories(kept)
            return len(memories) - len(kept)

        return await self._call(write)


def _owned(folder: Folder, thread_id: str, resource_id: str | None) -> Conversation | None:
    there = folder.thread(thread_id)
    if there and resource_id not in (None, there.thread.resource_id):
        raise OwnershipError("thread", thread_id)
    return there


def _owners(threads: Mapping[str, Conversation]) -> dict[str, str]:
    return {name: one.thread.resource_id for name, one in threads.items()}


def _placement(row: MessageRecord) -> Placement:
    return Placement(row.thread_id, row.resource_id, row.created_at, row.seq)


def _found(threads: Iterable[Conversation], ids: Iterable[str]) -> list[MessageRecord]:
    """Those of the messages that exist, wherever they are."""
    wanted = set(ids)
    found = {name: row for one in threads for name, row in one.messages.items() if name in wanted}
    return list(found.values())


def _take_out(threads: Iterable[Conversation], ids: Iterable[str]) -> set[str]:
    """Take messages out of wherever they are; returns the threads that had one."""
    gone = [(one.thread.id, one.messages.pop(name, None)) for one in threads for name in ids]
    return {thread_id for thread_id, row in gone if row is not None}


def _windows(threads: Iterable[Conversation], query: MessageQuery) -> list[MessageRecord]:
    """The includes that exist and are in scope, each with its neighbours."""
    owners = {query.resource_id}
    if query.resource_id is None:
        owners = {one.thread.resource_id for one in threads if one.thread.id in (query.threads or ())}
    return [
        row
        for include in query.includes
        for one in threads
        if include.id in one.messages
        and include.thread_id in (None, one.thread.id)
        and one.thread.resource_id in owners
        for row in window(one.messages.values(), include)
    ]


def _touched(thread: ThreadRecord, now: int) -> ThreadRecord:
    return replace(thread, updated_at=rising(now, thread.updated_at))


def _put_each(
    folder: Folder, threads: Iterable[Conversation], now: int, rows: Iterable[MessageRecord]
) -> None:
    """Touch and write threads, one after the other; ``rows`` are the messages that are written by that."""
    written: list[str] = []
    for one in threads:
        try:
            folder.put_thread(_touched(one.thread, now), one.messages)
        except OSError as exc:
            if not written:
                raise
            raise PartialWriteError(f"{folder.path}: {exc.strerror}", tuple(written)) from exc
        written += [row.id for row in rows if row.thread_id == one.thread.id]
