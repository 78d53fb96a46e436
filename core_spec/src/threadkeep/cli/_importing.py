"""Writing a file's entries into a store: batch by batch, each refused as a whole or kept as a whole."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, TypeGuard

import msgspec
from msgspec.structs import replace

from ..arguments import optional_identifier
from ..errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidArgumentError,
    LimitExceededError,
    NotFoundError,
    OwnershipError,
    ThreadkeepError,
)
from ..models import ArchiveMemory, Message, NewMessage, Resource, Thread
from ..registry import open_store
from ..store import Store
from .formats import BadInputError, Entry

__all__ = ["Counts", "import_entries"]

_BATCH = 1000
"""Entries that are rehearsed together, which takes a time that grows with their square."""
_BATCH_OF_MESSAGES = 5000
"""Messages alone are not rehearsed; in 1,000 at a time a libSQL file takes them in at 0.65 of this rate."""
_BATCH_BYTES = 8 * 1024 * 1024
_REFUSALS = (InvalidArgumentError, NotFoundError, OwnershipError, AlreadyExistsError, ConflictError)
_decode_saved = msgspec.json.Decoder(tuple[bool, Thread]).decode  # whether its file says only part of it

Counts = Counter[str]
"""How many were written of each kind."""


async def import_entries(store: Store, entries: Iterable[Entry]) -> Counts:
    """Write everything; what is there already is replaced, so that an interrupted import is simply run again.

    Saving messages touches their threads. So that these end up as the file has them, each is saved once more
    at the end; until then they wait in a temporary file, since a file may have any number of them.

    Raises:
        BadInputError: An entry breaks a rule. Nothing of its batch and of what follows was written.
        ThreadkeepError: An entry does not go with what is stored; its place is in a note. Nothing of its
            batch was written, but one batch of messages that follows it may have been.
    """
    counts: Counts = Counter()
    with tempfile.TemporaryFile() as spool:
        async with aclosing(_written(store, _batches(entries))) as written:
            async for batch, threads in written:
                spool.writelines(msgspec.json.encode(saved) + b"\n" for saved in threads)
                counts.update(_kind(entry.record) for entry in batch)
        if counts["message"] and counts["thread"]:
            spool.seek(0)
            for line in spool:
                is_partial, thread = _decode_saved(line)
                await store.save_thread(await _settled(store, thread) if is_partial else thread)
    return counts


async def _settled(store: Store, thread: Thread) -> Thread:
    """A thread of another tool's file once its messages are there: it was updated when its newest was said.

    Nothing here depends on when the import ran, so that one that was interrupted and run again ends the same.
    """
    newest = await store.list_messages(thread.id, order="desc", per_page=1)
    return replace(thread, updated_at=max([thread.updated_at, *[m.created_at for m in newest.items]]))


def _kind(record: object) -> str:
    if isinstance(record, Thread):
        return "thread"
    if isinstance(record, Resource):
        return "resource"
    return "memory" if isinstance(record, ArchiveMemory) else "message"


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """At most 1,000 entries, 5,000 where all are messages, and about 8 MiB at a time."""
    batch, size, most = list[Entry](), 0, _BATCH_OF_MESSAGES
    for entry in entries:
        if not _is_message(entry):
            most = _BATCH
        if batch and (len(batch) >= most or size + entry.size > _BATCH_BYTES):
            yield batch
            batch, size, most = [], 0, _BATCH_OF_MESSAGES if _is_message(entry) else _BATCH
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch


async def _written(
    store: Store, batches: Iterable[list[Entry]]
) -> AsyncGenerator[tuple[list[Entry], list[tuple[bool, Thread]]], None]:
    """Write batch after batch, and yield each with its threads once it is stored.

    While the database stores a batch of messages, the next one is read and checked. Other batches are written
    alone: what follows a thread may need it.
    """
    flying: deque[tuple[list[Entry], asyncio.Task[list[tuple[bool, Thread]]]]] = deque()
    try:
        waiting = iter(batches)
        while True:
            try:
                batch = next(waiting, None)
            except BadInputError:
                while flying:  # what was wrong before this line is said first
                    yield await _landed(store, flying)
                raise
            if batch is None:
                break
            ahead = 1 if _is_of_messages(batch) else 0
            while len(flying) > ahead:
                yield await _landed(store, flying)
            task = asyncio.create_task(_write(store, batch))
            flying.append((batch, task))
            await asyncio.sleep(0)  # it is checked now, and handed to the database
            while len(flying) > (0 if task.done() else ahead):  # refused already: nothing follows it
                yield await _landed(store, flying)
        while flying:
            yield await _landed(store, flying)
    except asyncio.CancelledError:
        for _, task in flying:
            task.cancel()  # one that waits for another writer's lock need not go on waiting
        raise
    finally:
        await asyncio.gather(*[task for _, task in flying], return_exceptions=True)


async def _landed(
    store: Store,
    flying: deque[tuple[list[Entry], asyncio.Task[list[tuple[bool, Thread]]]]],
) -> tuple[list[Entry], list[tuple[bool, Thread]]]:
    batch, task = flying[0]
    try:
        threads = await asyncio.shield(task)
    except _REFUSALS:
        if _is_of_messages(batch):
            await _rehearse(store, batch)  # finds which one it was
        raise
    flying.popleft()
    return batch, threads


def _is_message(entry: Entry) -> bool:
    return isinstance(entry.record, (Message, NewMessage))


def _is_of_messages(batch: list[Entry]) -> bool:
    return all(map(_is_message, batch))


async def _write(store: Store, batch: list[Entry]) -> list[tuple[bool, Thread]]:
    """Write a batch, and return its threads as they were saved, each with whether its file says only part."""
    messages = [entry.record for entry in batch if isinstance(entry.record, (Message, NewMessage))]
    if len(messages) == len(batch):
        await _save_messages(store, messages)  # all or none by itself: there is no need to rehearse it
        return []
    threads = await _rehearse(store, batch)
    for entry in batch:
        if isinstance(entry.record, Resource):
            await store.save_resource(entry.record)
    memories = {entry.record.id: entry.record for entry in batch if isinstance(entry.record, ArchiveMemory)}
    await store.save_memories(memories.values())
    for _, thread in threads:
        await store.save_thread(thread)
    await _save_messages(store, messages)
    return threads


async def _save_messages(store: Store, messages: Sequence[Message | NewMessage]) -> None:
    try:
        await store.save_messages(messages)
    except LimitExceededError:
        if len(messages) == 1:
            raise
        half = len(messages) // 2
        await _save_messages(store, messages[:half])
        await _save_messages(store, messages[half:])


async def _rehearse(store: Store, batch: list[Entry]) -> list[tuple[bool, Thread]]:
    """Do to a copy of what is stored what will be done to the store: any refusal comes before any write.

    Returns:
        The batch's threads as they are to be saved, each with whether its file says only part of it.
    """
    async with open_store("memory:") as stage:
        await _set_stage(store, stage, batch)
        threads: list[tuple[bool, Thread]] = []
        for entry in batch:
            try:
                saved = await _rehearse_entry(stage, entry)
            except InvalidArgumentError as exc:
                raise BadInputError(entry.place, _reason(exc)) from exc
            except ThreadkeepError as exc:
                exc.add_note(entry.place)
                raise
            if isinstance(saved, Thread):
                threads.append((entry.is_partial, saved))
    return threads


async def _set_stage(store: Store, stage: Store, batch: list[Entry]) -> None:
    """Copy what the batch is about: its threads, those of its messages that exist, and their threads."""
    records = [entry.record for entry in batch]
    messages = [record for record in records if isinstance(record, (Message, NewMessage))]
    stored = await store.get_messages([message.id for message in messages if _is_id(message.id)])
    names = [record.id for record in records if isinstance(record, Thread)]
    names += [message.thread_id for message in [*messages, *stored]]
    threads = [await store.get_thread(name) for name in dict.fromkeys(names) if _is_id(name)]
    for thread in filter(None, threads):
        await stage.save_thread(thread)
    await stage.save_messages(stored)
    for thread in filter(None, threads):  # saving messages touched it
        await stage.save_thread(thread)


def _is_id(value: str | None) -> TypeGuard[str]:
    """Whether it may be looked up; what may not, is refused by name when it is its turn."""
    try:
        optional_identifier(value, "id")
    except InvalidArgumentError:
        return False
    return value is not None


async def _rehearse_entry(stage: Store, entry: Entry) -> Any:
    record = entry.record
    if isinstance(record, Thread):
        if entry.is_partial:
            record = _onto(await stage.get_thread(record.id), record, is_dated=entry.is_dated)
        await stage.save_thread(record)
        return record
    if isinstance(record, Resource):
        return await stage.save_resource(record)
    if isinstance(record, ArchiveMemory):
        return await stage.save_memories([record])
    return await stage.save_messages([record])


def _onto(stored: Thread | None, given: Thread, *, is_dated: bool) -> Thread:
    """A thread whose file does not say everything about it: what is stored besides, stays."""
    if stored is None:
        return given
    return replace(
        given,
        title=given.title or stored.title,
        metadata={**stored.metadata, **given.metadata},
        working_memory=stored.working_memory,
        created_at=min(stored.created_at, given.created_at),
        updated_at=given.updated_at if is_dated else stored.created_at,
    )


def _reason(error: InvalidArgumentError) -> str:
    """The error without the position in a list of one that the file knows nothing of."""
    return str(error).replace("messages[0].", "").replace("memories[0].", "")
